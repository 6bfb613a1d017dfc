#!/usr/bin/env bash
# All of it compiles for an operating system that is not run here. cross.sh TARGET
. .ci/lib.sh

target=$1
# `check` needs no linker and no system library of theirs. Without the benches: criterion builds C code for the target.
cross "$target" check -q --workspace --exclude tercet-benches --all-targets
