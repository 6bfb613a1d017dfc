#!/usr/bin/env bash
# Instructions that kernels and pools take on a board in QEMU. mcu.sh m0|m3|m4|m7|m33|rv32
. .ci/lib.sh

board=$1
flags=() features=()
case $board in
m0) target=thumbv6m-none-eabi machine=mps2-an385 ;;
m3) target=thumbv7m-none-eabi machine=mps2-an385 ;;
m4) target=thumbv7em-none-eabihf machine=mps2-an386 ;;
m7) target=thumbv7em-none-eabihf machine=mps2-an500 cpu=cortex-m7 ;;
m33) target=thumbv8m.main-none-eabihf machine=mps2-an505 cpu=cortex-m33 features=(--features dsp) ;;
rv32) target=riscv32imac-unknown-none-elf machine=virt ;;
esac
