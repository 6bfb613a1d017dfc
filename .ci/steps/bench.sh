#!/usr/bin/env bash
# The benches build. They are not timed here: on a shared machine a time proves nothing.
. .ci/lib.sh

# As the tests are built, whose library and features they so share; without the libraries' own tests.
cargo bench --locked --workspace --exclude tercet-core --bench '*' --no-run --profile dev
