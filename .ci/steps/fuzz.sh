#!/usr/bin/env bash
# A short run of every fuzz target, of as many executions on every machine. TERCET_FUZZ_RUNS: how many each (20,000); `model`, whose
# executions load a language model and run it, a fifth of them.
. .ci/lib.sh

cargo +nightly --version || skip "no nightly; rustup toolchain install nightly"
cargo +nightly fuzz --version || skip "no cargo-fuzz; cargo install cargo-fuzz"
need c++ "install a C++ compiler (Debian: apt-get install g++), libFuzzer is built from source"

# A find is looked at by running its target again.
export CARGO_PROFILE_RELEASE_DEBUG=0
# Each access calls its check: in place, checks take a quarter of the time that compiling takes, and save little in so short runs.
export RUSTFLAGS=-Cllvm-args=-asan-instrumentation-with-call-threshold=0
targets=$(cargo +nightly fuzz list --fuzz-dir host/fuzz)
runs=${TERCET_FUZZ_RUNS:-20000}
for target in $targets; do
    # Finds go to a scratch corpus, so that the tree stays as committed; the committed seeds are read only.
    scratch=target/ci/corpus/$target
    mkdir -p "$scratch"
    seeds=host/fuzz/seeds/$target
    corpora=("$scratch")
    [[ -d $seeds ]] && corpora+=("$seeds")
    count=$runs
    [[ $target != model ]] || count=$((runs / 5))
    cargo +nightly fuzz run --fuzz-dir host/fuzz --target-dir target/fuzz "$target" "${corpora[@]}" -- -runs="$count" -rss_limit_mb=2048
done
note "${targets//$'\n'/ }: $runs runs each, of model $((runs / 5))"
