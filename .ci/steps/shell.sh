#!/usr/bin/env bash
# The scripts of .ci hold to shellcheck, and the workflow runs every step that there is.
. .ci/lib.sh

# covers NAME STEP: `.ci/test NAME` runs STEP.
covers() {
    [[ $2 == "$1" || $2 == "$1":* || ($1 == *:* && $2 == "$1"*) ]]
}

# The workflow writes steps out: behind `.ci/test`, in the `steps` of a matrix, or as left out.
workflow=.github/workflows/ci.yml
mapfile -t steps < <(bash .ci/test list)
mapfile -t named < <(sed -nE 's/^.*(run: \.ci\/test|# Left out:) ([^$]*)$/\2/p; s/^.*steps: "(.*)"$/\1/p' "$workflow" | tr -s ' ' '\n')
wrong=0
for name in "${named[@]}"; do
    found=
    for step in "${steps[@]}"; do
        covers "$name" "$step" && found=1
    done
    [[ $found ]] || {
        echo "$workflow: no step $name"
        wrong=1
    }
done
for step in "${steps[@]}"; do
    found=
    for name in "${named[@]}"; do
        covers "$name" "$step" && found=1
    done
    [[ $found ]] || {
        echo "$workflow: does not run $step, nor say that it leaves it out"
        wrong=1
    }
done
((wrong == 0))

need shellcheck "apt-get install shellcheck"
shellcheck -x .ci/run .ci/test .ci/device .ci/references .ci/lib.sh .ci/steps/*.sh
note "${#steps[@]} steps, all in the workflow"
