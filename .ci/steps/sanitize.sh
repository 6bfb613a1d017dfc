#!/usr/bin/env bash
# Where `unsafe` lives: kernels and memory maps of the host, pools of the core, the C API, under the address sanitizer.
. .ci/lib.sh

cargo +nightly --version || skip "no nightly; rustup toolchain install nightly"
# --target keeps the flag away from build scripts and macros. Not all tests: the sanitizer's own memory would break
# the measurement of `memory`, the references run other programs, and unit tests would have the crate compiled twice. Each case of a
# property costs several times as much as outside. Nor assertions or checks of overflow, which are the step `test`'s.
# Optimized, with each check in place: with called ones and less optimization the tests run several times as long.
export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false CARGO_PROFILE_DEV_OVERFLOW_CHECKS=false CARGO_PROFILE_DEV_DEBUG=0
sanitized() {
    RUSTFLAGS="-Zsanitizer=address --cfg sanitized" PROPTEST_CASES=${PROPTEST_CASES:-8} \
        cargo +nightly test --locked --target x86_64-unknown-linux-gnu --target-dir target/sanitize "$@"
}
# Host and core at once, whose features are then the same: host's default ones have what is tested here.
sanitized -p tercet-host -p tercet-core --features tercet-core/critical-section --test engines --test flows --test pools -- \
    simd_ parallel read convert_ look:: pool_ | tee target/ci/sanitize.out
# Its tests take no time, however it is compiled.
CARGO_PROFILE_DEV_OPT_LEVEL=0 sanitized --manifest-path firmware/c/Cargo.toml --config profile.dev.package.tercet-core.opt-level=0 \
    --test refusals --test laws | tee -a target/ci/sanitize.out
tests=$(tests_in target/ci/sanitize.out)
note "$tests tests"
