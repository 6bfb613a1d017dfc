#!/usr/bin/env bash
# What is shipped for CUDA, and the emulated device that tests it.
# cuda.sh ptx: the committed PTX and ptxas' report are what the sources give, and the lint finds what it looks for.
# cuda.sh emulator: the emulated device does what a device does, and catches what it should; what times kernels runs on it.
# cuda.sh checked: tests of the engine with the instructions of the shipped PTX, every load and store of them checked.
# cuda.sh asan: tests of the engine with the emulated device under the address sanitizer.
. .ci/lib.sh

need c++ "install a C++ compiler (Debian: apt-get install g++)"

case ${1:-} in
ptx)
    python3 -c 'import ensurepip, venv' 2>/dev/null || skip "no venv; apt-get install python3-venv"
    stamp=target/nvidia/installed
    if ! cmp -s kernels/requirements.txt "$stamp"; then
        python3 -m venv --clear target/nvidia
        target/nvidia/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r kernels/requirements.txt
        cp kernels/requirements.txt "$stamp"
    fi
    check=(--check)
    [[ ${TERCET_OVERWRITE:-} ]] && check=()
    target/nvidia/bin/python kernels/compile.py "${check[@]}"
    target/nvidia/bin/python kernels/report.py "${check[@]}"
    target/nvidia/bin/python kernels/tests/lint_test.py
    target/nvidia/bin/python kernels/tests/sass_test.py
    target/nvidia/bin/python kernels/sass.py
    kernels=$(cat kernels/ptx/*/*.ptx | grep -c '^\.visible \.entry')
    note "$kernels kernels, $(cat kernels/ptx/*/*.ptx | wc -c) bytes of PTX"
    ;;
emulator)
    kernels/emulator/test
    python3 kernels/tests/tune_test.py
    ;;
checked)
    launched=$PWD/target/ci/cuda-launched.txt
    rm -f "$launched"
    TERCET_EMULATOR_LAUNCHED=$launched TERCET_EMULATOR_VARIANT=ptx tests_of_engine | tee target/ci/cuda-checked.out
    shipped=target/ci/cuda-shipped.txt
    sed -n 's/^\.visible \.entry \([a-z0-9_]*\)(.*/\1/p' kernels/ptx/*/*.ptx | sort -u >"$shipped"
    missed=$(comm -23 "$shipped" <(sort -u "$launched"))
    if [[ $missed ]]; then
        printf 'never launched here:\n%s\n' "$missed"
        exit 1
    fi
    note "$(tests_in target/ci/cuda-checked.out) tests, each of $(wc -l <"$shipped") kernels launched"
    ;;
asan)
    # The sanitizer comes before everything else in the process, and finds functions of the C++ library only where that is there too.
    preload=$(c++ -print-file-name=libasan.so):$(c++ -print-file-name=libstdc++.so)
    host=$(rustc -vV | sed -n 's/^host: //p')
    runner=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$host")_RUNNER
    # Test binaries alone get it, not the compiler. What the processes' own libraries keep is no leak of the device's.
    export "$runner=env ASAN_OPTIONS=detect_leaks=0 TERCET_EMULATOR_VARIANT=asan LD_PRELOAD=$preload"
    # Nor what `checked` has of kernels that share their memory's code with others, nor the many sizes of one.
    tests_of_engine conformance:: cluster:: search:: search_many:: fp8:: wgmma:: cudas:: cudas_faults:: cudas_operations:: \
        cudas_resident:: nccl:: linear::every_layout linear::many_rows | tee target/ci/cuda-asan.out
    note "$(tests_in target/ci/cuda-asan.out) tests"
    ;;
*)
    echo "cuda.sh ptx|emulator|checked|asan" >&2
    exit 2
    ;;
esac
