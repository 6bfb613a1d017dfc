#!/usr/bin/env bash
# Unit, integration and doc tests of the workspace, with those of the outside references if these are installed; core's are the step
# `core`. It also runs host's examples.
. .ci/lib.sh

out=target/ci/test.out
cargo "${workspace[@]}" --no-run --lib --bins --tests
# Of the examples those to read: programs that checks run are built where they do, and linted with all else.
cargo build "${workspace[@]:1}" --example '0*'
# Of the tests on a device one runs at a time: all of them beside the others. Those of the engine are left to the step that runs them with
# every access of kernels checked, if that is to run too.
on_devices=device_tests
[[ " ${TERCET_STEPS:-}" != *" cuda:checked "* ]] || on_devices=tests_above
$on_devices >"$out.cuda" 2>&1 &
devices=$!
trap 'kill "$devices" 2>"$out.kill" || true; cat "$out.cuda"' EXIT
# All that does not begin with `cu`.
cargo "${workspace[@]}" --lib --bins --test '[!c]*' --test 'c[!u]*' | tee "$out"
cargo "${workspace[@]}" --doc | tee -a "$out"
# The examples to read, which were built above.
examples=0
for source in host/examples/*.rs; do
    "target/debug/examples/$(basename "$source" .rs)" >"$out.example"
    examples=$((examples + 1))
done
wait "$devices"
cat "$out.cuda" >>"$out"
note "$(tests_in "$out") tests, $examples examples"
