#!/usr/bin/env bash
# Every public function of the core links into an image whose panic handler cannot link, for each kind of Cortex-M; none is forgotten.
. .ci/lib.sh

need qemu-system-arm "apt-get install qemu-system-arm"
need python3 "install Python"
need nm "apt-get install binutils"
cargo +nightly --version || skip "no nightly; rustup toolchain install nightly"

# What is public, by rustdoc; its JSON is a nightly's.
documented=target/no_panic
cargo +nightly rustdoc --locked -q -p tercet-core --lib --features critical-section,portable-atomic --target-dir $documented -- \
    -Z unstable-options --output-format json
printed=target/ci/no_panic-reached.txt
for board in microbit an386 an547; do
    # What the linker would not take does not get here.
    firmware $board no_panic >"$printed"
    # Nor does anything in the core need a heap, or the formatting of text and floats.
    image=$cross_target/$(board_target $board)/release/no_panic
    if nm "$image" | grep -E '_4core3fmt|7flt2dec|Cs[0-9A-Za-z]*_5alloc|__rust_(alloc|dealloc|realloc)'; then
        echo "$board: the above is of a heap or of core::fmt"
        exit 1
    fi
    if grep -q '^reached ' "$printed"; then
        python3 .ci/no_panic.py $documented/doc/tercet_core.json <(tr -d '\r' <"$printed") .ci/no_panic.txt | tee target/ci/no_panic.txt
    fi
done
# Of the last board, which has printed.
note "$(tail -n 1 target/ci/no_panic.txt)"
