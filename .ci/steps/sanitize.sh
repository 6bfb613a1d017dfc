#!/usr/bin/env bash
# Where `unsafe` lives, the host crate's memory maps, core's pools and the C API, under the address sanitizer.
. .ci/lib.sh

cargo +nightly --version || skip "no nightly; rustup toolchain install nightly"
# --target keeps the flag away from build scripts and macros. Not all tests: the sanitizer's own memory would break
# the measurement of `memory`, and the references run other programs.
sanitized() {
    RUSTFLAGS=-Zsanitizer=address cargo +nightly test --locked --target x86_64-unknown-linux-gnu \
        --target-dir target/sanitize "$@"
}
sanitized -p tercet-host --lib --test read --test parallel \
    --test convert_blocks --test convert_codes --test convert_refused --test look | tee target/ci/sanitize.out
sanitized -p tercet-core --features critical-section --test 'pool*' | tee -a target/ci/sanitize.out
sanitized --manifest-path firmware/c/Cargo.toml --test refusals --test laws | tee -a target/ci/sanitize.out
tests=$(tests_in target/ci/sanitize.out)
note "$tests tests"
