#!/usr/bin/env bash
# Every workspace is formatted.
. .ci/lib.sh

for manifest in $(workspaces); do
    cargo fmt --all --check --manifest-path "$manifest"
done
