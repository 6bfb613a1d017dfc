#!/usr/bin/env bash
# The AMX kernels in an emulated processor, since few machines have one: the conformance table, products of all sizes against the
# reference engine's, and a training run. What the processor is made of, and so what this shows: .ci/amx/README.md
. .ci/lib.sh

python=${TERCET_PYTHON:-python3}
need cc "install a C compiler"
[[ $(uname -sm) == "Linux x86_64" ]] || skip "the emulator is a program for Linux on x86-64"
"$python" -c 'import bochscpu, numpy' 2>target/ci/amx-import.txt || grep -q isoc23 target/ci/amx-import.txt ||
    skip "no bochscpu-python and NumPy; .ci/references"
TERCET_ISOC23=$PWD/target/ci/isoc23.so
export TERCET_ISOC23 PYTHONDONTWRITEBYTECODE=1
cc -O1 -shared -fPIC -o "$TERCET_ISOC23" .ci/amx/isoc23.c
"$python" .ci/amx/test_tiles.py
"$python" .ci/amx/test_linux.py

# Static, at a fixed address: no loader to emulate. Copied, since they are linked over those that the step `conformance:host` runs.
for program in conformance_threads compare_products trained; do
    released rustc --bin $program -- -C target-feature=+crt-static -C relocation-model=static
    cp "$released/$program" "target/ci/amx-$program"
done

# emulate PROGRAM: prints what it prints; its other lines, and what it executed, go to target/ci/amx-PROGRAM.txt too.
emulate() {
    local program=target/ci/amx-$1
    # The extension's own farewells say nothing about a program.
    "$python" .ci/amx/emulate.py "$program" TERCET_BACKEND=amx 2>"target/ci/amx-$1.txt" || {
        cat "target/ci/amx-$1.txt"
        return 1
    }
    cat "target/ci/amx-$1.txt" >&2
    # It ran on tiles, and not on what stands in for them.
    grep -q 'tdpbssd.*tdpbsud' "target/ci/amx-$1.txt"
}

emulate conformance_threads >target/ci/conformance-amx.txt
note "$(grep -vc '^#' target/ci/conformance-amx.txt) digests agree"
emulate compare_products | tee target/ci/amx-compared.txt
note "$(sed -n 's/^amx: //p' target/ci/amx-compared.txt)"
# By itself: a failure within another command's argument is none.
said=$(emulate trained)
note "$said"
