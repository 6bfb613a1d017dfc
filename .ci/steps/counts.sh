#!/usr/bin/env bash
# Instructions of the host's hot operations under valgrind, beside the committed tables: one for each set of instructions that
# valgrind knows. counts.sh; TERCET_OVERWRITE=1 renews the tables.
. .ci/lib.sh

need valgrind "apt-get install valgrind"
grep -qw avx2 /proc/cpuinfo 2>/dev/null || skip "no processor with AVX2"
released build --bin counts
for backend in scalar avx2; do
    $released/counts "$backend" "benches/counts/snapshots/$backend.txt" |
        tee "target/ci/counts-$backend.txt"
done
note "$(cat target/ci/counts-{scalar,avx2}.txt | grep -cv '^#') counts"
