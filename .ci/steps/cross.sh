#!/usr/bin/env bash
# All of it compiles for an operating system that is not run here. cross.sh TARGET
. .ci/lib.sh

target=$1
# The tests too on Windows; those of another Unix are Linux's, and compiled where the workflow runs them.
tests=()
[[ $target == *windows* ]] && tests=(--all-targets)
# `check` needs no linker and no system library of theirs. Without the benches: criterion builds C code for the target.
cross "$target" check -q --workspace --exclude tercet-benches "${tests[@]}"
