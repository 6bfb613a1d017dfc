#!/usr/bin/env bash
# What is shipped for CUDA, and the emulated device that tests it.
# cuda.sh ptx: the committed PTX and ptxas' report are what the sources give, and the lint finds what it looks for.
# cuda.sh emulator: the emulated device does what a device does, and catches what it should.
# cuda.sh checked: tests of the engine with every load and store of kernels checked (`.ci/test test` has all of them without).
. .ci/lib.sh

need c++ "install a C++ compiler (Debian: apt-get install g++)"
case ${1:-} in
ptx)
    python3 -c 'import ensurepip, venv' 2>/dev/null || skip "no venv; apt-get install python3-venv"
    stamp=target/nvidia/installed
    if ! cmp -s kernels/requirements.txt "$stamp"; then
        python3 -m venv --clear target/nvidia
        target/nvidia/bin/pip install --quiet --disable-pip-version-check --only-binary :all: -r kernels/requirements.txt
        cp kernels/requirements.txt "$stamp"
    fi
    check=(--check)
    [[ ${TERCET_OVERWRITE:-} ]] && check=()
    target/nvidia/bin/python kernels/compile.py "${check[@]}"
    target/nvidia/bin/python kernels/report.py "${check[@]}"
    target/nvidia/bin/python kernels/tests/lint_test.py
    kernels=$(cat kernels/ptx/*/*.ptx | grep -c '^\.visible \.entry')
    note "$kernels kernels, $(cat kernels/ptx/*/*.ptx | wc -c) bytes of PTX"
    ;;
emulator)
    kernels/emulator/test
    ;;
checked)
    tests=(--test cuda_conformance --test cuda_memory --test cuda_graph --test cuda_quantize --test cuda_block --test cuda_cluster)
    TERCET_EMULATOR_VARIANT=check cargo test --locked -p tercet-gpu "${tests[@]}" | tee target/ci/cuda-checked.out
    note "$(tests_in target/ci/cuda-checked.out) tests"
    ;;
*)
    echo "cuda.sh ptx|emulator|checked" >&2
    exit 2
    ;;
esac
