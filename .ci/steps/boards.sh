#!/usr/bin/env bash
# Programs that check themselves on an emulated board. boards.sh BOARD
. .ci/lib.sh

board=$1

# `no_panic`: here also the kernels of this board link without one.
firmware "$board" no_panic --budget
# The application, its driver and the emulated sensor have none either, and give the desk's digest.
firmware "$board" motion_no_panic --budget
printed=target/ci/board-pools-$board.txt
firmware "$board" pools --budget >"$printed"
cat "$printed"
note "$(sed -n 's/^# \(.* interrupts\),.*/\1/p' "$printed")"
