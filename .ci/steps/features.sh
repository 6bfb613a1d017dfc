#!/usr/bin/env bash
# All features of core together on every kind of target, and alone where it means something there: checked and not linked, since images of
# firmware/ are built from the same sources. Without any, and with `dsp` alone, `matrix` links core for every target; `std` alone is what
# conformance.sh runs, and a feature alone on a desk is linted (`clippy:features`). features.sh host: what a desktop's library gives without
# any, and with candle's tensors, which are 130 crates that no other step builds.
. .ci/lib.sh

if [[ ${1:-} == host ]]; then
    # An operation has its kernels by one feature, or else core's loops: between no feature and all of them there is nothing else.
    digests=target/ci/features-host.txt
    cargo run --locked -q -p tercet-host --no-default-features --example conformance_threads >"$digests"

    # Clippy in the compiler's place lints what is tested: checking all of candle once more would take as long as building it. Nothing of
    # it computes for long.
    printed=target/ci/features-candle.txt
    export CARGO_PROFILE_DEV_OPT_LEVEL=0
    export CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ RUSTC_WORKSPACE_WRAPPER=clippy-driver
    for kind in --lib --doc; do
        cargo test --locked -p tercet-host --no-default-features --features candle,clustering "$kind" tensors
    done | tee "$printed"
    note "$(grep -vc '^#' "$digests") digests agree, $(tests_in "$printed") tests"
    exit
fi

# Without atomics that compare and swap, portable-atomic wants critical sections.
plain=(thumbv6m-none-eabi riscv32imc-unknown-none-elf)
atomic=(thumbv7m-none-eabi thumbv7em-none-eabihf thumbv8m.main-none-eabihf riscv32imac-unknown-none-elf)
systems=(i686-unknown-linux-gnu aarch64-unknown-linux-gnu s390x-unknown-linux-gnu)
all=conformance,defmt,dsp,mve,critical-section,portable-atomic
built=0

# As firmware/boards/an505.toml and the build of the packaged crate, which share this one's `core` where that is built here.
export CARGO_TARGET_THUMBV8M_MAIN_NONE_EABIHF_RUSTFLAGS=-Ctarget-cpu=cortex-m33

# check FEATURES TARGET…: a program that has core, as `checked` does it, since tercet-core alone would bring what its tests depend on.
check() {
    local set=$1 target first=$2 targets=()
    shift
    for target; do
        need_target "$target"
        [[ $target == "$first" ]] || targets+=(--target "$target")
    done
    "${checked[@]}" "$first" check -q --release --features "$set" "${targets[@]}"
    built=$((built + $#))
}

# All together on every kind of processor; a target without floats in registers, or without an extension's instructions, has no code of
# its own. A feature alone is code that no target changes but by its atomics, and the extension's is for one processor.
checked=(dependent core)
check "$all" "${plain[@]}" "${atomic[@]}"
for set in defmt critical-section critical-section,portable-atomic; do
    check "$set" "${plain[0]}"
done
check mve thumbv8m.main-none-eabihf
check portable-atomic "${atomic[0]}"
checked=(desktop)
check "$all" "${systems[@]}"
note "$built checks"
