#!/usr/bin/env bash
# Unit, integration and doc tests of the workspace, the outside references' among them where they are installed; core's are the step `core`.
. .ci/lib.sh

cargo test --locked --workspace --exclude tercet-core | tee target/ci/test.out
tests=$(tests_in target/ci/test.out)
note "$tests tests"
