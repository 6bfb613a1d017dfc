#!/usr/bin/env bash
# The motion application on an emulated board logs what it logs on every other, within its budgets, and its operations take the committed
# instructions. motion.sh BOARD. TERCET_OVERWRITE=1 renews what is committed.
. .ci/lib.sh

board=$1
firmware "$board" motion --snapshot firmware/snapshots/motion.txt --budget
firmware "$board" costs --budget

figure() {
    sed -n "s/^$1 *$2 *//p" "firmware/snapshots/$board.txt"
}
note "flash $(figure motion flash.rest) without data, RAM $(figure motion ram.total)"
