#!/usr/bin/env bash
# Runs the README's commands (its blocks that open with ```sh run) in a copy of what git tracks: what a user gets.
. .ci/lib.sh

copy=target/ci/readme
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"

awk '/^```sh run$/ { on = 1; next } /^```/ { on = 0 } on' README.md >"$copy/readme-commands.sh"
[[ -s $copy/readme-commands.sh ]] || {
    echo "README.md has no block that opens with \`\`\`sh run"
    exit 1
}
cat "$copy/readme-commands.sh"
# One target folder for all copies: dependencies need no second build. Optimized a little and not across crates: more takes longer than
# what is run.
(cd "$copy" && CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_TARGET_DIR=$PWD/../../readme-target bash -euxo pipefail readme-commands.sh)
note "$(grep -c . "$copy/readme-commands.sh") lines"
