#!/usr/bin/env bash
# The benches build. They are not timed here: on a shared machine a time proves nothing.
. .ci/lib.sh

# Without the libraries' own tests, which would be compiled once more. Linked, and chosen from the whole workspace, as `released` does.
CARGO_PROFILE_BENCH_LTO=off cargo bench --locked --workspace --bench '*' --no-run
