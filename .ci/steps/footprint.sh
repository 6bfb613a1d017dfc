#!/usr/bin/env bash
# The core links into Cortex-M0 images without a heap, computes the committed digests there, and takes no more of the
# board than firmware/README.md says. TERCET_OVERWRITE=1 renews that table.
. .ci/lib.sh

board=microbit
target=$(board_target $board)
readme=firmware/README.md
need qemu-system-arm "apt-get install qemu-system-arm"

# no_heap PROGRAM: nothing in the image comes from `alloc`. The debugging information names the files that code comes from,
# also where all of it was inlined. (No program here has a global allocator, so rustc would not link `alloc` either.)
no_heap() {
    local image=$cross_target/$target/release/$1
    grep -aq library/core/src "$image" || {
        echo "$1: no debugging information names files of the standard library"
        exit 1
    }
    if grep -aoE 'library/alloc/src|__rust_(alloc|dealloc|realloc)\w*' "$image" | sort | uniq -c | grep .; then
        echo "$1: the above is of a heap"
        exit 1
    fi
}

# close WHAT COMMITTED FOUND: within a tenth and 64 bytes, since compilers differ.
close() {
    local apart=$(($3 > $2 ? $3 - $2 : $2 - $3))
    if ((apart * 10 > $2 + 640)); then
        echo "$1: $3 bytes, the table in $readme has $2; TERCET_OVERWRITE=1 .ci/test footprint renews it"
        return 1
    fi
}

figure() {
    sed -n "s/^# $1 //p" "$printed" | tr -d '\r'
}

for program in nothing online_8x6 online_16x64 kmeans_8x6; do
    printed=target/ci/footprint-$program.txt
    firmware "$board" "$program" >"$printed"
    no_heap "$program"
    while read -r line; do
        grep -qxF "$line" core/conformance.txt || {
            echo "$program: $line is not in core/conformance.txt"
            exit 1
        }
    done < <(grep -v '^#' "$printed" | tr -d '\r')
    flash=$(figure flash) state=$(figure state) stack=$(figure stack)
    echo "$program: $flash bytes of flash, $state of state, $stack of stack"
    if [[ ${TERCET_OVERWRITE:-} ]]; then
        sed -i -E "s/^(\| \`$program\` \|.*\|) [0-9]+ \| [0-9]+ \| [0-9]+ \|$/\1 $flash | $state | $stack |/" "$readme"
    fi
    read -r _ a b c < <(sed -n -E "s/^\| (\`$program\`) \|.*\| ([0-9]+) \| ([0-9]+) \| ([0-9]+) \|$/\1 \2 \3 \4/p" "$readme")
    close "$program, flash" "$a" "$flash"
    [[ $b == "$state" ]] || {
        echo "$program: $state bytes of state, the table in $readme has $b"
        exit 1
    }
    close "$program, stack" "$c" "$stack"
done
note "k = 8, d = 6: $(sed -n 's/^# \([a-z]*\) \([0-9]*\)/\2 \1,/p' target/ci/footprint-online_8x6.txt | tr -d '\r' | paste -sd' ')" no panic, no heap
