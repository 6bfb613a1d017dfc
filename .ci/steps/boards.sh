#!/usr/bin/env bash
# Programs that check themselves on an emulated board. boards.sh BOARD
. .ci/lib.sh

board=$1
need qemu-system-arm "apt-get install qemu-system-arm"

# `no_panic`: here also the kernels of this board link without one.
for program in no_panic pools; do
    printed=target/ci/board-$program-$board.txt
    firmware "$board" "$program" >"$printed"
    cat "$printed"
done
note "$(sed -n 's/^# \(.* interrupts\),.*/\1/p' "target/ci/board-pools-$board.txt" | tr -d '\r')"
