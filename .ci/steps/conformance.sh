#!/usr/bin/env bash
# The conformance table printed on a machine with an operating system is the committed one, by core's engine and by the threads' engine with
# every instruction set that runs here; and a training run ends with the same file. conformance.sh host|TARGET. Boards are board.sh's.
. .ci/lib.sh

target=$1
printed=target/ci/conformance-$target.txt

# trained PROGRAM…: a training run, which compares by itself.
trained() {
    local said
    # By itself: a failure within another command's argument is none.
    said=$("$@")
    note "$said"
}

# backends PROGRAM…: the threads' engine, which compares by itself, with each instruction set that it lists.
backends() {
    local backend count
    for backend in $("$@" backends); do
        TERCET_BACKEND=$backend "$@" >"$printed-$backend"
        count=$(grep -vc '^#' "$printed-$backend")
        note "$backend: $count digests agree"
    done
}

case $target in
host)
    # With overflow checked the tests of core run the same suite.
    released build --bin conformance --bin conformance_threads --bin trained
    $released/conformance >"$printed"
    agree "$printed"
    backends $released/conformance_threads
    for backend in $($released/conformance_threads backends); do
        TERCET_BACKEND=$backend trained $released/trained
    done
    trained $released/trained gpu/models
    ;;
aarch64-unknown-linux-gnu | i686-unknown-linux-gnu | s390x-unknown-linux-gnu)
    # QEMU 7.2 computes s390x's MDEBR (f32 times f32 to f64) wrongly: a digest that differs there alone may be QEMU's
    # (see `product` in core/src/number/lanes.rs).
    cpu=${target%%-*}
    emulator=qemu-${cpu/i686/i386} library=${cpu/aarch64/arm64}
    need "$emulator" "apt-get install qemu-user"
    need "$cpu-linux-gnu-gcc" "apt-get install gcc-$cpu-linux-gnu libc6-dev-${library/i686/i386}-cross"
    variable=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")
    export "${variable}_LINKER=$cpu-linux-gnu-gcc"
    run=("$emulator" -L "/usr/$cpu-linux-gnu")
    programs=(--bin conformance --bin trained --features train)
    [[ $cpu == aarch64 ]] && programs+=(--bin conformance_threads --features threads)
    desktop "$target" build -q --release "${programs[@]}"
    built=target/cross/$target/release
    "${run[@]}" "$built/conformance" >"$printed"
    agree "$printed"
    trained "${run[@]}" "$built/trained"
    if [[ $cpu == aarch64 ]]; then
        backends "${run[@]}" "$built/conformance_threads"
    fi
    ;;
wasm32-unknown-unknown)
    need node "install Node.js"
    cross "$target" build -q -p tercet-core --features std --example conformance_wasm --release
    node .ci/wasm.mjs "target/cross/$target/release/examples/conformance_wasm.wasm" >"$printed"
    agree "$printed"
    ;;
*)
    echo "conformance.sh host|TARGET" >&2
    exit 2
    ;;
esac
