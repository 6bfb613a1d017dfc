#!/usr/bin/env bash
# Each feature of core alone, none, and all together, on every target where it means something. Compiled and not linked: images of
# firmware/ are built from the same sources.
. .ci/lib.sh

# Without atomics that compare and swap, portable-atomic wants critical sections.
plain=(thumbv6m-none-eabi riscv32imc-unknown-none-elf)
atomic=(
    thumbv7m-none-eabi thumbv7em-none-eabi thumbv7em-none-eabihf thumbv8m.main-none-eabi thumbv8m.main-none-eabihf
    riscv32imac-unknown-none-elf
)
desktop=(i686-unknown-linux-gnu aarch64-unknown-linux-gnu s390x-unknown-linux-gnu wasm32-unknown-unknown)
built=0

# check LIBRARIES FEATURES TARGET…
check() {
    local libraries=$1 set=$2 target first=$3 targets=()
    shift 3
    for target; do
        [[ $(compiler_for "$target") ]] || skip "no standard library for $target; rustup target add $target"
        targets+=(--target "$target")
    done
    cross "$first" "$libraries" check --locked -p tercet-core --features "$set" "${targets[@]}"
    built=$((built + 1 + ${#targets[@]} / 2))
}

for set in '' defmt dsp mve dsp,mve critical-section critical-section,portable-atomic \
    defmt,dsp,mve,critical-section,portable-atomic; do
    check core "$set" "${plain[@]}" "${atomic[@]}"
done
check core portable-atomic "${atomic[@]}"
for set in std std,defmt,dsp,mve,critical-section,portable-atomic; do
    check std,panic_abort "$set" "${desktop[@]}"
done
note "$built builds"
