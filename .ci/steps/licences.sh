#!/usr/bin/env bash
# Every dependency comes from crates.io, under a licence that .ci/licences.txt allows.
. .ci/lib.sh

list=target/ci/dependencies.txt
: >"$list"
for manifest in $(workspaces); do
    # It takes what core takes, and core as a package that is not there yet.
    [[ $manifest != .ci/dependent/* ]] || continue
    cargo tree --locked --manifest-path "$manifest" --workspace --all-features --target all --edges normal,build,dev \
        --prefix none --format '{p}|{l}' | sed 's/ (\*)$//' >>"$list"
    if grep '^source = ' "$(dirname "$manifest")/Cargo.lock" | grep -v 'github.com/rust-lang/crates.io-index'; then
        echo "$manifest takes the above from elsewhere than crates.io"
        exit 1
    fi
done
sort -u -o "$list" "$list"

unknown=$(awk -F'|' 'NR == FNR { allowed[$0]; next } NF && !($2 in allowed)' .ci/licences.txt "$list")
if [[ $unknown ]]; then
    printf 'their licence is not in .ci/licences.txt:\n%s\n' "$unknown"
    exit 1
fi
note "$(grep -c . "$list") packages"
