#!/usr/bin/env bash
# README.md's table of targets: the digests are as many as are committed, and the flash of one call is what a program that depends on the crate takes, whose package is these sources. TERCET_OVERWRITE=1 renews the table.
. .ci/lib.sh
shopt -s inherit_errexit

readme=README.md
need readelf "apt-get install binutils"

# As crates.io would get them: whole, with their licences, and no larger than sources and PTX are; crates.io takes 10 MiB.
packages=target/ci/packages
rm -rf "$packages/package"
cargo package --locked --no-verify --allow-dirty -p tercet-core -p tercet-kernels -p tercet-host -p tercet-gpu --target-dir "$packages"
for crate in "$packages"/package/*.crate; do
    name=$(basename "$crate" .crate)
    # All packed files have the same date, so without -m cargo would take an earlier build of them for current.
    tar -xzmf "$crate" -C "$packages"
    for file in LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md; do
        [[ -s $packages/$name/$file ]] || {
            echo "$name: no $file"
            exit 1
        }
    done
    bytes=$(wc -c <"$crate")
    if ((bytes > 2 << 20)); then
        echo "$name: $bytes bytes packed"
        exit 1
    fi
    echo "$name: $bytes bytes packed"
done
# The package of core is the sources that boards compile and the flash is measured of, and compiles as what it is to others.
core=$(basename "$packages"/package/tercet-core-*.crate .crate)
core=$packages/$core
for source in src build.rs; do
    diff -r "$core/$source" "core/$source"
done
dependent "$core" thumbv6m-none-eabi check -q --release
grep -qF "/$core/src/lib.rs" target/cross/thumbv6m-none-eabi/release/deps/tercet_core-*.d

# flash TARGET: bytes of code and constants of .ci/dependent's one call. Core has the features that boards compile it with, for all but
# their programs; a program takes nothing of what it does not call.
flash() {
    local target=$1 features=conformance,critical-section,defmt,portable-atomic
    if [[ $target == thumbv8m.main-none-eabihf ]]; then
        # As firmware/boards/an505.toml.
        export "CARGO_TARGET_$(tr 'a-z.-' 'A-Z__' <<<"$target")_RUSTFLAGS=-Ctarget-cpu=cortex-m33"
        features+=,dsp
    fi
    dependent core "$target" build -q --release --bin reference --features $features >&2
    local total=0 name kind size flags
    while read -r name kind _ _ size _ flags _; do
        if [[ $kind == PROGBITS && $flags == *A* && $name != .eh_frame* ]]; then
            total=$((total + 16#$size))
        fi
    done < <(readelf -SW "target/cross/$target/release/reference" | sed 's/^ *\[[ 0-9]*\]//')
    echo "$total"
}

# The rows, as they stand: | target | how | steps | digests | flash |
rows=target/ci/matrix-rows.txt
sed -n '/^| target | run on |/,/^$/p' "$readme" | sed -e 1,2d -e '/^$/d' >"$rows"
all=$(grep -cv '^#' core/conformance.txt)
# Without those of long texts.
small=$(grep -v '^#' core/conformance.txt | grep -cvE '/(threes|sinks|517|639|130|step) |llama/batch ')
wrong=()
while IFS='|' read -r _ target how steps count bytes _; do
    target=$(tr -d '` ' <<<"$target")
    found=–
    digests=$all
    case $target in
    *-none-*)
        found=$(flash "$target")
        digests=$small
        ;;
    esac
    if [[ ${TERCET_OVERWRITE:-} ]]; then
        sed -i "s#^| \`$target\` |.*#| \`$target\` |$how|$steps| $digests | $found |#" "$readme"
        continue
    fi
    ((count == digests)) || wrong+=("$target: $digests digests, the table has$count")
    committed=${bytes// /}
    echo "$target: $found bytes, the table has $committed"
    # Compilers differ.
    if [[ $found == – || $committed == – ]]; then
        [[ $found == "$committed" ]] || wrong+=("$target: flash $found, the table has $committed")
    elif ((found > committed + committed / 10 + 64 || committed > found + committed / 10 + 64)); then
        wrong+=("$target: $found bytes of flash, the table has $committed")
    fi
done <"$rows"

if ((${#wrong[@]})); then
    printf '%s\n' "${wrong[@]}" "TERCET_OVERWRITE=1 .ci/test matrix renews the figures"
    exit 1
fi
note "$(wc -l <"$rows") targets"
