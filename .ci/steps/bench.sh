#!/usr/bin/env bash
# The benches build. They are not timed here: on a shared machine a time proves nothing.
. .ci/lib.sh

# Without the libraries' own tests, which would be compiled once more; and linked as most users link, since across crates the
# library would be compiled anew for each of them.
export CARGO_PROFILE_BENCH_LTO=off
cargo bench --locked -p tercet-benches --bench '*' --no-run
