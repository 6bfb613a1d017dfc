#!/usr/bin/env bash
# Instructions that kernels and pools take on a board in QEMU, beside the committed table: the programs of benches/mcu
# check their results, then count. mcu.sh m0|m3|m4|m7|m33|m55|rv32 [PROGRAM…]; of PROGRAMs only their lines are shown.
. .ci/lib.sh

board=$1
shift
chosen=("$@")

cpu='' arguments=()
case $board in
# Cortex-M0 code on a Cortex-M3, which runs all of it: no model of QEMU's has an M0 and megabytes.
m0) target=thumbv6m-none-eabi machine=mps2-an385 ;;
m3) target=thumbv7m-none-eabi machine=mps2-an385 ;;
m4) target=thumbv7em-none-eabihf machine=mps2-an386 ;;
m7) target=thumbv7em-none-eabihf machine=mps2-an500 cpu=cortex-m7 ;;
m33) target=thumbv8m.main-none-eabihf machine=mps2-an505 cpu=cortex-m33 arguments=(--features dsp) ;;
# The compiler knows no Armv8.1-M: the code around the vectors is that of a Cortex-M33.
m55)
    target=thumbv8m.main-none-eabihf machine=mps3-an547 cpu=cortex-m33 arguments=(--features "dsp mve")
    ;;
rv32) target=riscv32imac-unknown-none-elf machine=virt ;;
esac
case $board in
rv32)
    qemu=(qemu-system-riscv32 -bios none)
    need qemu-system-riscv32 "apt-get install qemu-system-misc"
    ;;
*)
    qemu=(qemu-system-arm)
    need qemu-system-arm "apt-get install qemu-system-arm"
    ;;
esac
flags=${cpu:+-Ctarget-cpu=$cpu}
programs='linear cluster'
case $board in
m0 | m4)
    programs+=' pools'
    arguments+=(--features pools)
    ;;
esac
# Not by --config, where cargo takes the dot in `thumbv8m.main` for its own.
export "CARGO_TARGET_$(tr 'a-z.-' 'A-Z__' <<<"$target")_RUSTFLAGS=$flags"
# A pool takes an instruction more on a Cortex-M4, of all boards, where Clippy compiles it, or without debug information: which of two registers
# holds what is a matter of chance. The others are linted as they are built.
build=(linted "$target" cargo build --locked --target "$target")
if [[ $board == m4 ]]; then
    build=(cross "$target" build)
    export CARGO_PROFILE_RELEASE_DEBUG=true
fi
# Counted with a library for speed, as rustup's is.
export TERCET_SYSROOT_FOR=speed
CARGO_TARGET_DIR=$PWD/target/mcu "${build[@]}" -q --release --manifest-path benches/mcu/Cargo.toml --bins "${arguments[@]}"
images=target/mcu/$target/release

runner=("${qemu[@]}" -M "$machine" -icount shift=7 -nographic -monitor none
    -semihosting-config "enable=on,target=native" -kernel)
if ((${#chosen[@]})); then
    for program in "${chosen[@]}"; do
        "${runner[@]}" "$images/$program"
    done
    exit
fi
"${runner[@]}" "$images/agree"
cargo run --locked -q --manifest-path benches/mcu/table/Cargo.toml --target-dir target/mcu-table -- \
    "$board" "$images" "$programs" "benches/mcu/snapshots/$board.txt" "${runner[@]}"
note "$(wc -l <"target/ci/mcu-$board.jsonl") cases"
