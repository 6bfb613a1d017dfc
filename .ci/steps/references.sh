#!/usr/bin/env bash
# The outside references alone: ggml, gguf, onnxruntime, transformers, NumPy. What each compared is in the log.
. .ci/lib.sh

cargo "${workspace[@]}" --test reference -- --nocapture | tee target/ci/references.out
tests=$(tests_in target/ci/references.out)
note "$tests tests"
