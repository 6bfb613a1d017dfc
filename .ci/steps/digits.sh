#!/usr/bin/env bash
# The digits network of firmware gives the logits on a board that `tercet network run` gives here. digits.sh BOARD[:TARGET]
. .ci/lib.sh

board=$1
need_board "$board"
here=target/ci/digits-${board/:/-}-here.txt printed=target/ci/digits-${board/:/-}.txt

tercet network run firmware/data/digits.gguf firmware/data/digits.npy --digest >"$here"
# Without a panic that could be reached, or it would not link.
firmware "$board" digits --budget >"$printed"
diff "$here" <(grep -v '^#' "$printed" | tr -d '\r')

note "$(sed -n '$p' "$here"), $(sed -n 's/^# \([a-z]*\) \([0-9]*\)/\2 \1,/p' "$printed" | tr -d '\r' | paste -sd' ')" no panic
