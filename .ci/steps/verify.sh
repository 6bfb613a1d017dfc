#!/usr/bin/env bash
# `tercet verify --firmware` on the boards' images of the conformance suite: those that its steps left, or built here.
. .ci/lib.sh

boards=(microbit an385 an386 an500 an505 an547 rv32imc rv32imac)
folder=target/ci/verify
rm -rf "$folder"
for board in "${boards[@]}"; do
    need_board "$board"
    mkdir -p "$folder/$board"
    for program in conformance_weights conformance_points; do
        image=target/firmware/$board/$program
        # Sources that changed since are not those of the command.
        if [[ ! -e $image || $(find core/src core/conformance.txt firmware/src firmware/boards -newer "$image" -print -quit) ]]; then
            image "$board" "$program"
        fi
        ln "$image" "$folder/$board/$program"
    done
    runner describe "$board" >"$folder/$board/board.json"
done

printed=target/ci/verify.json
tercet verify --json --firmware "$folder" >"$printed"
# Every board with all that is committed; the command itself fails where one is not as released.
python3 - "$printed" "$(grep -cv '^#' core/conformance.txt)" "${#boards[@]}" <<'EOF'
import json, sys

found = json.load(open(sys.argv[1]))
boards = [engine for engine in found["engines"] if engine["engine"].startswith("emulated ")]
digests, count = int(sys.argv[2]), int(sys.argv[3])
assert found["agree"] and len(boards) == count, found
assert all(board["agreed"] == board["operations"] == digests for board in boards), boards
EOF
note "${#boards[@]} boards, $(grep -cv '^#' core/conformance.txt) digests each"

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
images=target/firmware points=$folder/an386/conformance_points
cp --remove-destination "$images/rv32imc/conformance_points" "$points"
refused "an image for another processor" "an image for qemu-system-riscv32, and the board's is qemu-system-arm"
# Of another version: the image's own table has the name too, so to itself it is right.
LC_ALL=C sed 's,search/rerank,search/rerunk,g' "$images/an386/conformance_points" >"$points"
refused "an operation that is not released" 'conformance_points: .*search/rerunk.* is no operation of this version'
