#!/usr/bin/env bash
# The motion application on an emulated board logs what it logs on every other, within its budgets, and its operations take the committed
# instructions. motion.sh BOARD. TERCET_OVERWRITE=1 renews what is committed.
. .ci/lib.sh

board=$1
said=target/ci/motion-$board.said
: >"$said"
trap 'cat "$said" >&2' EXIT
firmware "$board" motion --snapshot firmware/snapshots/motion.txt --budget 2>"$said"
# figure NAME: as the tool said it.
figure() {
    sed -n "s/^$board motion: .*\<$1 \([0-9]*\).*/\1/p" "$said"
}
note "flash $(figure flash.rest) and $(figure flash.named) of data, RAM $(figure ram.total)"
firmware "$board" costs --budget 2>>"$said"
