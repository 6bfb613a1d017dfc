#!/usr/bin/env bash
# `tercet verify --firmware` on boards' images of the conformance suite: those that the steps `board` left, where each board has run its own,
# or built here. One board a kind of kernels, and one of each emulator.
. .ci/lib.sh

boards=(microbit an386 an547 rv32imc)
images "${boards[@]}"
folder=target/ci/verify
rm -rf "$folder"
mkdir -p "$folder"
for board in "${boards[@]}"; do
    cp -rl "$images/$board" "$folder"
done
printed=target/ci/verify.json
# Those of long texts are larger machines'.
digests=$(grep -v '^#' core/conformance.txt | grep -cvE '/(threes|sinks|517|639|130|step) |llama/batch ')
tercet verify --json --firmware "$folder" >"$printed"
# Every board with all that is committed; the command itself fails where one is not as released.
python3 - "$printed" "$digests" "${#boards[@]}" <<'EOF'
import json, sys

found = json.load(open(sys.argv[1]))
boards = [engine for engine in found["engines"] if engine["engine"].startswith("emulated ")]
digests, count = int(sys.argv[2]), int(sys.argv[3])
assert found["agree"] and len(boards) == count, found
assert all(board["agreed"] == board["operations"] == digests for board in boards), boards
EOF
note "${#boards[@]} boards, $digests digests each"

# refused WHAT WORDS: the an386's images as they are now are no success, in these words.
refused() {
    if tercet verify --firmware "$folder/an386" >"$printed" 2>&1; then
        echo "$1: not noticed"
        exit 1
    fi
    grep -q "^error: .*$2" "$printed" || {
        cat "$printed"
        exit 1
    }
}
points=$folder/an386/conformance_points
cp --remove-destination "$images/rv32imc/conformance_points" "$points"
refused "an image for another processor" "an image for qemu-system-riscv32, and the board's is qemu-system-arm"
# Of another version: the image's own table has the name too, so to itself it is right.
LC_ALL=C sed 's,search/rerank,search/rerunk,g' "$images/an386/conformance_points" >"$points"
refused "an operation that is not released" 'conformance_points: .*search/rerunk.* is no operation of this version'
