#!/usr/bin/env bash
# Instructions of llama2.c's runq.c for its 64th token on an emulated Cortex-M4, with a model of the sizes of nano: count.sh PATH/TO/runq.c
# Needs gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm. Not run in CI: the file is not ours (https://github.com/karpathy/llama2.c, MIT).
set -euo pipefail

runq=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# A board has no files to map.
mkdir "$work/sys"
cat >"$work/sys/mman.h" <<'H'
#include <sys/types.h>
#define PROT_READ 1
#define MAP_PRIVATE 2
#define MAP_FAILED ((void *)-1)
static inline void *mmap(void *at, size_t len, int a, int b, int c, off_t d) { return MAP_FAILED; }
static inline int munmap(void *at, size_t len) { return 0; }
H
for options in -Os -O2 -O3 "-O3 -funroll-loops"; do
    # shellcheck disable=SC2086 # several options
    arm-none-eabi-gcc $options -w -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -I"$work" -DRUNQ="\"$runq\"" \
        "$here/harness.c" -T "$here/board.ld" -nostartfiles --specs=nosys.specs -Wl,--no-warnings -lm -o "$work/runq"
    printf '%s: ' "$options"
    qemu-system-arm -M mps2-an386 -icount shift=7 -nographic -monitor none -semihosting-config enable=on,target=native -kernel "$work/runq" </dev/null 2>&1
done
