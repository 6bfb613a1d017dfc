#!/usr/bin/env bash
# Clippy, warnings denied, on every crate; `features` on their feature sets. clippy.sh [features|fuzz|firmware|mcu|peers]
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
    # Core's features alone, so that no other crate's join in, and with them what tests and examples use of each.
    for features in '' critical-section,portable-atomic; do
        lint -p tercet-core --all-targets --no-default-features --features "$features"
    done
    for features in std defmt critical-section portable-atomic; do
        lint -p tercet-core --lib --no-default-features --features "$features"
    done
    lint -p tercet-core --all-targets --all-features
    # What a desktop leaves out.
    for features in '' serde clustering search files network reports measure; do
        lint -p tercet-host --lib --no-default-features --features "$features"
    done
    ;;
fuzz)
    [[ -e host/fuzz/Cargo.toml ]]
    need c++ "install a C++ compiler (Debian: apt-get install g++), libFuzzer is built from source"
    lint --manifest-path host/fuzz/Cargo.toml --all-targets --target-dir target
    ;;
firmware)
    need_clippy thumbv7em-none-eabihf
    need_clippy riscv32imc-unknown-none-elf
    # Without defmt too: what does not log must not need it.
    for features in '' defmt; do
        cross thumbv7em-none-eabihf clippy -q --release --manifest-path firmware/Cargo.toml \
            --config firmware/boards/an386.toml --features "$features" -- -D warnings
    done
    lint --manifest-path firmware/runner/Cargo.toml --all-targets --target-dir target/firmware-runner
    # What is not Cortex-M's alone.
    cross riscv32imc-unknown-none-elf clippy -q --release --manifest-path firmware/Cargo.toml \
        --config firmware/boards/rv32imc.toml --lib --bin conformance_weights --bin conformance_points --bin digits -- -D warnings
    lint --manifest-path firmware/Cargo.toml --lib --tests --examples --target-dir target/firmware-runner
    ;;
peers)
    lint --manifest-path benches/peers/rust/Cargo.toml --all-targets --target-dir target
    ;;
mcu)
    need_clippy thumbv7em-none-eabihf
    need_clippy thumbv8m.main-none-eabihf
    need_clippy riscv32imac-unknown-none-elf
    mcu=(clippy -q --release --manifest-path benches/mcu/Cargo.toml)
    cross thumbv7em-none-eabihf "${mcu[@]}" --features pools -- -D warnings
    cross thumbv8m.main-none-eabihf "${mcu[@]}" --features "dsp mve" -- -D warnings
    cross riscv32imac-unknown-none-elf "${mcu[@]}" -- -D warnings
    lint --manifest-path benches/mcu/table/Cargo.toml --all-targets --target-dir target/mcu-table
    ;;
esac
