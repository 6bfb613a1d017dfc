#!/usr/bin/env bash
# The benches build. They are not timed here: on a shared machine a time proves nothing.
. .ci/lib.sh

cargo bench --locked --workspace --no-run
