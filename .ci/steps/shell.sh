#!/usr/bin/env bash
# The scripts of .ci hold to shellcheck.
. .ci/lib.sh

need shellcheck "apt-get install shellcheck"
shellcheck -x .ci/run .ci/test .ci/references .ci/lib.sh .ci/steps/*.sh
