#!/usr/bin/env bash
# The benches build. They are not timed here: on a shared machine a time proves nothing.
. .ci/lib.sh

# Without the libraries' own tests, which would be compiled once more.
cargo bench --locked -p tercet-benches --bench '*' --no-run
