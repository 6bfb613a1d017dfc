#!/usr/bin/env bash
# Clippy, warnings denied, on every crate; `features` on their feature sets. Programs for boards are linted where they are built (`linted` in
# lib.sh); `firmware` and `mcu` are what of them is for the desk. clippy.sh [features|fuzz|firmware|mcu|peers]
. .ci/lib.sh

lint() {
    cargo clippy --locked "$@" -- -D warnings
}

case ${1:-} in
'')
    lint --workspace --all-targets
    lint --manifest-path .ci/runner/Cargo.toml --all-targets --target-dir target/ci-runner
    ;;
features)
    # The command without CUDA.
    lint -p tercet-gpu --all-targets --no-default-features
    # The Python package with it.
    lint -p tercet-python --features cuda
    # Core's features alone, so that no other crate's join in. Of tests and examples only those that need critical sections look at one.
    lint -p tercet-core --all-targets --no-default-features --features critical-section,portable-atomic
    for features in '' std defmt critical-section portable-atomic; do
        lint -p tercet-core --lib --no-default-features --features "$features"
    done
    lint -p tercet-core --lib --all-features
    # What a desktop leaves out.
    for features in '' serde ndarray clustering search files chat network reports measure train simd; do
        lint -p tercet-host --lib --no-default-features --features "$features"
    done
    ;;
fuzz)
    [[ -e host/fuzz/Cargo.toml ]]
    need c++ "install a C++ compiler (Debian: apt-get install g++), libFuzzer is built from source"
    lint --manifest-path host/fuzz/Cargo.toml --all-targets --target-dir target
    ;;
firmware)
    lint --manifest-path firmware/runner/Cargo.toml --all-targets --target-dir target/firmware-runner
    lint --manifest-path firmware/Cargo.toml --lib --tests --examples --target-dir target/firmware-runner
    ;;
peers)
    lint --manifest-path benches/peers/rust/Cargo.toml --all-targets --target-dir target
    ;;
mcu)
    lint --manifest-path benches/mcu/table/Cargo.toml --all-targets --target-dir target/mcu-table
    ;;
esac
