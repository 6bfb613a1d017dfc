#!/usr/bin/env bash
# Builds the programs for a real board, and checks of their images what can be checked without one. hardware.sh PACKAGE
. .ci/lib.sh

package=$1
room=firmware/$package
need flip-link "cargo install --locked flip-link@0.1.12"
need python3 "install Python 3"
target=$(sed -n 's/^target = "\(.*\)"$/\1/p' "$room/.cargo/config.toml")
if [[ $(compiler_for "$target") == debian ]]; then
    [[ -x /usr/bin/cargo-clippy ]] || skip "no clippy beside Debian's compiler; apt-get install rust-web-clippy"
fi

# A user stands in the package's folder and gives none of these; the folder for artefacts keeps `digits` apart from QEMU's.
there=(--locked --release --manifest-path "$room/Cargo.toml" --config "$room/.cargo/config.toml" --target-dir target/hardware)
cross "$target" core clippy "${there[@]}" -- -D warnings
cross "$target" core build "${there[@]}"

images=target/hardware/$target/release
for program in "tercet-$package" digits; do
    note "$program: $(python3 .ci/image.py "$images/$program" "$room/memory.x")"
done
