#!/usr/bin/env bash
# Every file is formatted. `cargo fmt` of each workspace would look at the libraries once more for each.
. .ci/lib.sh

git ls-files -z '*.rs' | xargs -0 rustfmt --edition 2024 --check
