#!/usr/bin/env bash
# The scripts of .ci hold to shellcheck, and the workflow and README.md's table list the steps and targets that there are.
. .ci/lib.sh

target/ci-runner/debug/ci listed
need shellcheck "apt-get install shellcheck"
shellcheck -x .ci/run .ci/test .ci/dependencies .ci/maturin_cargo .ci/references .ci/sysroot .ci/lib.sh .ci/steps/*.sh
note "$(target/ci-runner/debug/ci list | wc -l) steps, all in the workflow"
