#!/usr/bin/env bash
# Builds for a machine that is not run here. cross.sh TARGET
. .ci/lib.sh

target=$1
case $target in
*-none-*)
    cross "$target" core build --locked -p tercet-core --release
    cross "$target" core build --locked -p tercet-core --release --features defmt
    cross "$target" core build --locked -p tercet-core --release --features critical-section
    cross "$target" core build --locked -p tercet-core --release --features critical-section,portable-atomic
    ;;
*)
    # `check` needs no linker and no system library of theirs.
    if [[ $target == *-windows-gnu && $(compiler_for "$target") == debian ]]; then
        need x86_64-w64-mingw32-dlltool "apt-get install binutils-mingw-w64-x86-64"
    fi
    # Without the benches: criterion builds C code for the target.
    cross "$target" std,panic_abort check --locked --workspace --exclude tercet-benches --all-targets
    ;;
esac
