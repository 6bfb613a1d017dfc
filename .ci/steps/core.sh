#!/usr/bin/env bash
# core alone, as microcontrollers get it, with its pools in critical sections: in `test` the other crates switch its `std` feature on.
. .ci/lib.sh

cargo test --locked -p tercet-core --no-default-features --features critical-section,portable-atomic | tee target/ci/core.out
tests=$(tests_in target/ci/core.out)
note "$tests tests"
