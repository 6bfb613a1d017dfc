#!/usr/bin/env bash
# Clippy, warnings denied, on every crate and feature set. clippy.sh [fuzz|firmware]
. .ci/lib.sh

lint() {
    cargo clippy --locked "$@" -- -D warnings
}

case ${1:-} in
'')
    lint --workspace --all-targets
    lint --workspace --all-targets --all-features
    # Alone, so that no other crate's features join in.
    for features in '' std defmt critical-section portable-atomic std,defmt,critical-section,portable-atomic; do
        lint -p tercet-core --all-targets --no-default-features --features "$features"
    done
    ;;
fuzz)
    [[ -e host/fuzz/Cargo.toml ]]
    need c++ "install a C++ compiler (Debian: apt-get install g++), libFuzzer is built from source"
    lint --manifest-path host/fuzz/Cargo.toml --all-targets --target-dir target/fuzz-clippy
    ;;
firmware)
    # Its own config.toml names the linker script's target.
    if [[ $(compiler_for thumbv7em-none-eabihf) == debian && ! -x /usr/bin/cargo-clippy ]]; then
        skip "no clippy beside Debian's compiler; apt-get install rust-web-clippy"
    fi
    cross thumbv7em-none-eabihf core clippy --locked --release --manifest-path firmware/Cargo.toml -- -D warnings
    ;;
esac
