#!/usr/bin/env bash
# The C API. c.sh host: its tests, its header in C and C++, and its example on this machine; c.sh BOARD: the example in QEMU,
# whose digests are the committed ones.
. .ci/lib.sh

manifest=firmware/c/Cargo.toml example=firmware/c/example
out=$PWD/target/ci/c-$1

# digests FILE: what the example printed there is in the conformance table, and reads digits as the command does here.
digests() {
    local line count=0
    while read -r line; do
        grep -qxF "$line" core/conformance.txt || {
            echo "$1: $line is not in core/conformance.txt"
            return 1
        }
        count=$((count + 1))
    done < <(grep / "$1" | tr -d '\r')
    ((count == 12)) || {
        echo "$1: $count digests, the example has 12"
        return 1
    }
    diff firmware/snapshots/digits.txt <(grep -v '[/#]' "$1" | tr -d '\r')
    sed -n '$p' firmware/snapshots/digits.txt
}

# no_panic FILE: neither the library's panic handler nor any function of core's panics is there.
no_panic() {
    if arm-none-eabi-nm -C "$1" 2>/dev/null | grep -iE 'panic|unwind'; then
        echo "$1 holds the above"
        return 1
    fi
}

mkdir -p "$out"
if [[ $1 == host ]]; then
    need gcc "apt-get install gcc"
    need g++ "apt-get install g++"
    need make "apt-get install make"
    need valgrind "apt-get install valgrind"
    # Nobody steps through it here.
    export CARGO_PROFILE_DEV_DEBUG=0
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --manifest-path "$manifest"
    # Clippy compiles it.
    RUSTC_WORKSPACE_WRAPPER=$(rustc --print sysroot)/bin/clippy-driver
    export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
    cargo test --locked --manifest-path "$manifest" | tee "$out/tests.txt"
    # As C99 and as C++ take it, alone.
    for standard in c99 c11 c17; do
        echo '#include "tercet.h"' |
            gcc -std=$standard -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I firmware/c/include -x c -
    done
    for standard in c++11 c++20; do
        echo '#include "tercet.h"' |
            g++ -std=$standard -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I firmware/c/include -x c++ -
    done
    # Of what the tests are made of; the boards' libraries are those that are shipped.
    cargo rustc --locked --manifest-path "$manifest" --lib --crate-type staticlib
    make -C "$example" host BUILD="$out" HOST_LIBRARY="$PWD/firmware/c/target/debug/libtercet_c.a"
    valgrind -q --error-exitcode=9 --leak-check=full "$out/host/example" >"$out/host.txt"
    digests "$out/host.txt"
    note "$(tests_in "$out/tests.txt") tests, 12 digests and $(sed -n '$p' firmware/snapshots/digits.txt) under valgrind"
    exit
fi

board=$1
target=$(board_target "$board")
need arm-none-eabi-gcc "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi"
need make "apt-get install make"
need qemu-system-arm "apt-get install qemu-system-arm"
echo '#include "tercet.h"' |
    arm-none-eabi-g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I firmware/c/include -x c++ -
# The whole archive, every function of it.
cross "$target" rustc -q --release --manifest-path "$manifest" --lib --crate-type staticlib
library=$PWD/target/cross/$target/release/libtercet_c.a
no_panic "$library"
make -C "$example" BOARD="$board" BUILD="$out" LIBRARY="$library"
make -s -C "$example" BOARD="$board" BUILD="$out" LIBRARY="$library" run >"$out/$board.txt"
digests "$out/$board.txt"
no_panic "$out/$board/example.elf"
# What functions add to a program, as the README says it.
readme=firmware/c/README.md
case $board in
an386) column=3 ;;
microbit) column=4 ;;
*) column= ;;
esac
while [[ $column ]] && IFS= read -r row; do
    functions=$(cut -d'|' -f2 <<<"$row" | tr -d '`,')
    committed=$(cut -d'|' -f$column <<<"$row" | tr -d ' ')
    found=$(make -s -C "$example" BOARD="$board" BUILD="$out" LIBRARY="$library" FUNCTIONS="$functions" size)
    echo "$functions: $found bytes"
    if [[ ${TERCET_OVERWRITE:-} ]]; then
        awk -v row="$row" -v column=$column -v found="$found" -F'|' -v OFS='|' \
            '$0 == row { $column = " " found " " } { print }' "$readme" >"$out/readme.md"
        cp "$out/readme.md" "$readme"
        continue
    fi
    apart=$((found > committed ? found - committed : committed - found))
    if ((apart * 10 > committed + 640)); then
        echo "$readme has $committed; TERCET_OVERWRITE=1 .ci/test c:$board renews it"
        exit 1
    fi
done < <(grep -E '^\| `tercet_[^|]*\| [0-9]+ \| [0-9]+ \|$' "$readme")

flash=$(arm-none-eabi-size "$out/$board/example.elf" | awk 'NR == 2 { print $1 + $2 }')
note "12 digests, $(sed -n '$p' firmware/snapshots/digits.txt); the example takes $flash bytes of flash; no panic in the archive"
