#!/usr/bin/env bash
# The tests of the tools that run firmware and these steps.
. .ci/lib.sh

for tool in firmware/runner .ci/runner; do
    folder=target/firmware-runner
    [[ $tool == .ci/* ]] && folder=target/ci-runner
    cargo test --locked -q --manifest-path "$tool/Cargo.toml" --target-dir "$folder"
done | tee target/ci/runner.out
tests=$(tests_in target/ci/runner.out)
note "$tests tests"
