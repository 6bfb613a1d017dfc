#!/usr/bin/env bash
# All that an emulated board is to show. board.sh BOARD[:TARGET]; TERCET_OVERWRITE=1 renews what is committed.
. .ci/lib.sh

board=$1
name=${board/:/-}
target=$(board_target "$board")
printed=target/ci/board-$name.txt
# What the tool says of each program, of which the notes take some.
said=target/ci/board-$name.said
: >"$said"
# Whatever a failing command's own errors go to.
exec 3>&2
trap 'cat "$said" >&3' EXIT

# The committed table, by the same images that `verify` runs; three, so that each fits into small flash.
images "$board"
: >"$printed"
for program in conformance_weights conformance_points conformance_models; do
    firmware "$board" "$program" --image "$images/$name/$program" --budget >>"$printed" 2>>"$said"
done
agree "$printed" small
note "$(sed -n 's/^# deepest stack: //p' "$printed" | sort -n | tail -n 1) the deepest"

# The network reads digits to the logits that `tercet network run` gives; without a panic that could be reached, or it would not link.
firmware "$board" digits --snapshot firmware/snapshots/digits.txt --budget >"$printed" 2>>"$said"
note "$(sed -n 's/^# \([a-z]*\) \([0-9]*\)/\2 \1,/p' "$printed" | tr -d '\r' | paste -sd' ') digits"

# figure PROGRAM NAME: as the tool said it.
figure() {
    sed -n "s/^$board $1: .*\<$2 \([0-9]*\).*/\1/p" "$said"
}

# A language model in flash writes what `tercet generate` does, as a test of the command holds the snapshot to it. Once a kind of kernels; Thumb-1 code on
# a board with more memory than those that need it.
case $board in
an385 | an386 | an500 | an505 | an547 | rv32imac) story=$board ;;
microbit) story=an385:thumbv6m-none-eabi ;;
*) story= ;;
esac
if [[ $story ]]; then
    firmware "$story" story --snapshot firmware/snapshots/story.txt --budget >"$printed" 2>>"$said"
    note "$(sed -n "s/^$story story: .*instructions.token_64 \([0-9]*\).*/\1/p" "$said") instructions for the 64th token of a story"
fi

# Another reads recordings, to the surprisals that a desk computes. Once a kind of kernels.
case $board in
an386 | an547) reading=$board ;;
microbit) reading=an385:thumbv6m-none-eabi ;;
*) reading= ;;
esac
if [[ $reading ]]; then
    firmware "$reading" motion_model --snapshot firmware/snapshots/motion_model.txt --budget >"$printed" 2>>"$said"
    note "$(sed -n "s/^$reading motion_model: .*instructions.reading_64 \([0-9]*\).*/\1/p" "$said") instructions for a reading of motion"
fi

# On the processor's own target, if it is an Arm: the application logs what it logs on every other board, within its budgets, and its
# operations take the committed instructions.
case $board in
*:* | rv32*) ;;
*)
    firmware "$board" motion --snapshot firmware/snapshots/motion.txt --budget >"$printed" 2>>"$said"
    note "motion: flash $(figure motion flash.rest) and $(figure motion flash.named) of data, RAM $(figure motion ram.total)"
    firmware "$board" costs --budget >"$printed" 2>>"$said"
    ;;
esac

# The package that users copy, by its own configuration, as they run it.
if [[ $board == an386 ]]; then
    room=firmware/template
    linted "$target" timeout 300 cargo run --locked -q --release --manifest-path $room/Cargo.toml --config $room/.cargo/config.toml >"$printed" 2>>"$said"
    diff <(echo 'digit 4') "$printed"
    note 'the template reads its digit'
fi

# One board a kind of kernels: all of core links without a panic, so do the application, its driver and the emulated sensor, and pools
# are shared with interrupts.
case $board in
microbit | an386 | an547)
    firmware "$board" no_panic --budget >"$printed" 2>>"$said"
    firmware "$board" no_panic_models --budget >"$printed" 2>>"$said"
    firmware "$board" motion_no_panic --budget >"$printed" 2>>"$said"
    firmware "$board" pools --budget >"$printed" 2>>"$said"
    note "$(sed -n 's/^# \(.* interrupts\),.*/\1/p' "$printed")"
    ;;
esac
