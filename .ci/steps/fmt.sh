#!/usr/bin/env bash
# Every workspace is formatted.
. .ci/lib.sh

for manifest in Cargo.toml .ci/dependent/Cargo.toml firmware/Cargo.toml firmware/nucleo-f411re/Cargo.toml firmware/pico/Cargo.toml \
    host/fuzz/Cargo.toml benches/mcu/Cargo.toml; do
    [[ -e $manifest ]] || continue
    cargo fmt --all --check --manifest-path "$manifest"
done
