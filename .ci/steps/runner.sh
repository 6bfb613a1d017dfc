#!/usr/bin/env bash
# The tests of the tool that runs firmware.
. .ci/lib.sh

cargo test --locked --manifest-path firmware/runner/Cargo.toml --target-dir target/firmware-runner | tee target/ci/runner.out
tests=$(tests_in target/ci/runner.out)
note "$tests tests"
