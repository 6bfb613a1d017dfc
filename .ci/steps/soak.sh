#!/usr/bin/env bash
# The pools at work for long: every example named …_soak, 10^8 operations. soak.sh valgrind: 10^6 of them, and the pools'
# tests, under valgrind.
. .ci/lib.sh

soaks() {
    local source
    for source in core/tests/programs/*_soak.rs; do
        cargo run --locked --release -p tercet-core --features critical-section --example "$(basename "$source" .rs)" -- "$1"
    done
}

case ${1:-} in
'')
    soaks 100000000 | tee target/ci/soak.out
    note "$(grep -c operations target/ci/soak.out) pools"
    ;;
valgrind)
    need valgrind "apt-get install valgrind"
    # What is definitely lost is an error too.
    export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite"
    soaks 1000000
    # Each case costs about fifty times as much as outside.
    PROPTEST_CASES=${PROPTEST_CASES:-16} cargo test --locked -p tercet-core --features critical-section --test pools |
        tee target/ci/valgrind.out
    tests=$(tests_in target/ci/valgrind.out)
    note "$tests tests"
    ;;
esac
