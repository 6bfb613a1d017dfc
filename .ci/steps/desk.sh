#!/usr/bin/env bash
# The firmware's library on this machine: its tests, with the recordings and the digest of the boards, and the examples that training asks.
. .ci/lib.sh

cargo test --locked --manifest-path firmware/Cargo.toml --lib --examples --target-dir target/firmware-runner | tee target/ci/desk.out
tests=$(tests_in target/ci/desk.out)
note "$tests tests"
