#!/usr/bin/env bash
# All of it compiles for an operating system that is not run here. cross.sh TARGET
. .ci/lib.sh

target=$1
if [[ $target == *-windows-gnu && $(compiler_for "$target") == debian ]]; then
    need x86_64-w64-mingw32-dlltool "apt-get install binutils-mingw-w64-x86-64"
fi
# `check` needs no linker and no system library of theirs. Without the benches: criterion builds C code for the target.
cross "$target" std,panic_abort check --locked --workspace --exclude tercet-benches --all-targets
