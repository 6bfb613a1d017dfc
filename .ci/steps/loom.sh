#!/usr/bin/env bash
# The shared pool's free list, and the GPU crate's queue, under loom: every order of their steps that the memory model allows.
. .ci/lib.sh

# Its own folder: the flag would rebuild everything else.
export RUSTFLAGS="--cfg loom"
# Models take seconds, and what they are made of takes a minute more to optimize.
export CARGO_PROFILE_DEV_OPT_LEVEL=1
cargo test --locked -p tercet-core -p tercet-gpu-models --lib --target-dir target/loom models | tee target/ci/loom.out
tests=$(tests_in target/ci/loom.out)
note "$tests models"
