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
# One target folder for all copies: dependencies need no second build. Optimized as the tests are, and the libraries a little: more takes
# longer than what is run. Cargo reads the settings of the folders above, too.
mkdir -p target/ci/.cargo
cat >target/ci/.cargo/config.toml <<'END'
[profile.release]
lto = "off"
codegen-units = 16
opt-level = 1
[profile.release.package]
"*" = { opt-level = 0 }
tercet-gpu = { opt-level = 0 }
END
(cd "$copy" && CARGO_TARGET_DIR=$PWD/../../readme-target bash -euxo pipefail readme-commands.sh)
note "$(grep -c . "$copy/readme-commands.sh") lines"
