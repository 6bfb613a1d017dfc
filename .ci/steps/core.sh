#!/usr/bin/env bash
# core alone, as microcontrollers get it: in `test` the other crates switch its `std` feature on.
. .ci/lib.sh

cargo test --locked -p tercet-core --no-default-features | tee target/ci/core.out
# The pools in critical sections.
cargo test --locked -p tercet-core --features critical-section,portable-atomic --test 'pool*' | tee -a target/ci/core.out
cargo test --locked -p tercet-core --features critical-section,portable-atomic --doc pool | tee -a target/ci/core.out
tests=$(tests_in target/ci/core.out)
note "$tests tests"
