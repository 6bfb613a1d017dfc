#!/usr/bin/env bash
# Builds the programs for a real board, and checks of their images what can be checked without one: also that they take what
# the table in firmware/README.md says, within 2 %. TERCET_OVERWRITE=1 renews its rows. hardware.sh PACKAGE
. .ci/lib.sh

package=$1
room=firmware/$package
readme=firmware/README.md
need flip-link "cargo install --locked flip-link@0.1.12"
need python3 "install Python 3"
target=$(sed -n 's/^target = "\(.*\)"$/\1/p' "$room/.cargo/config.toml")

# A user stands in the package's folder and gives none of these. QEMU's `digits` gets the same name, but only when it is built.
there=(--release --manifest-path "$room/Cargo.toml" --config "$room/.cargo/config.toml")
linted "$target" cargo build --locked -q --target "$target" "${there[@]}"

images=target/cross/$target/release

# near FOUND COMMITTED: compilers differ a little.
near() {
    (($1 <= $2 + $2 / 50 && $2 <= $1 + $1 / 50))
}

for program in "tercet-$package" digits story; do
    takes=$(python3 .ci/image.py "$images/$program" "$room/memory.x")
    note "$program: $takes"
    read -r _ flash _ statics _ <<<"$takes"
    case $program in
    digits | story) row="| \`$package\`, \`$program\` |" ;;
    *) row="| \`$package\`, motion |" ;;
    esac
    if [[ ${TERCET_OVERWRITE:-} ]]; then
        sed -i "s/^$row [0-9]* | \([0-9]*\) | [0-9]* |\$/$row $flash | \1 | $statics |/" "$readme"
    fi
    IFS='|' read -r _ _ committed_flash _ committed_statics _ < <(grep -F "$row" "$readme")
    if ! near "$flash" "$committed_flash" || ! near "$statics" "$committed_statics"; then
        echo "$program: flash $flash, statics $statics; $readme has$committed_flash and$committed_statics (TERCET_OVERWRITE=1 renews)"
        exit 1
    fi
done

# QEMU knows no board of these, but an STM32F4 with the same core and memory: there the digits run unchanged, since they use
# nothing else of the chip. A probe would read the log from RAM; here QEMU's monitor saves it.
if [[ $package == nucleo-f411re ]]; then
    need qemu-system-arm "apt-get install qemu-system-arm"
    printed=target/ci/hardware-digits.txt
    python3 .ci/rtt.py "$images/digits" netduinoplus2 >"$printed.frames"
    runner "$target" decode "$images/digits" <"$printed.frames" >"$printed"
    diff firmware/snapshots/digits.txt <(sed 's/^INFO //' "$printed")
    note "$(sed -n '$p' firmware/snapshots/digits.txt) of the unchanged image on an STM32F4 in QEMU"
fi
