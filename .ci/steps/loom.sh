#!/usr/bin/env bash
# The shared pool's free list under loom: every order of its steps that the memory model allows.
. .ci/lib.sh

# Its own folder: the flag would rebuild everything else.
RUSTFLAGS="--cfg loom" cargo test --locked -p tercet-core --lib --target-dir target/loom models | tee target/ci/loom.out
tests=$(tests_in target/ci/loom.out)
note "$tests models"
