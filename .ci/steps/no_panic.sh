#!/usr/bin/env bash
# No public function of the core is forgotten by firmware's programs `no_panic` and `no_panic_models`, which link without a panic; the steps `boards` link it for
# every board.
. .ci/lib.sh

need python3 "install Python"
cargo +nightly --version || skip "no nightly; rustup toolchain install nightly"

# What is public, by rustdoc; its JSON is a nightly's.
documented=target/no_panic
cargo +nightly rustdoc --locked -q -p tercet-core --lib --features conformance,critical-section,portable-atomic --target-dir $documented -- \
    -Z unstable-options --output-format json
# A board with room for the names.
printed=target/ci/no_panic-reached.txt
firmware an386 no_panic >"$printed"
firmware an386 no_panic_models >>"$printed"
python3 .ci/no_panic.py $documented/doc/tercet_core.json "$printed" .ci/no_panic.txt | tee target/ci/no_panic.txt
note "$(tail -n 1 target/ci/no_panic.txt)"
