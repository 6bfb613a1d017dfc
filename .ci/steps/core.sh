#!/usr/bin/env bash
# core alone, as microcontrollers get it, with its pools in critical sections: in `test` the other crates switch its `std` feature on. It
# also runs core's examples.
. .ci/lib.sh

# In pieces: as one, what its laws are written in takes half as long again to compile, and hardly less to run.
cargo test --locked -p tercet-core --no-default-features --features critical-section,portable-atomic \
    --config profile.dev.package.tercet-core.codegen-units=16 | tee target/ci/core.out
tests=$(tests_in target/ci/core.out)
examples=0
for source in core/examples/*.rs; do
    "target/debug/examples/$(basename "$source" .rs)" >target/ci/core-example.txt
    examples=$((examples + 1))
done
note "$tests tests, $examples examples"
