#!/usr/bin/env bash
# The documentation builds without a warning: no broken link, no missing page.
. .ci/lib.sh

export RUSTDOCFLAGS="-D warnings"
cargo doc --locked --workspace --no-deps --all-features
