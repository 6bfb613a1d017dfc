#!/usr/bin/env bash
# The package for Python: its wheel in an environment with nothing else but NumPy, where the examples run; then its
# types, and its tests beside NumPy, scikit-learn and gguf, the notebooks among them. Built as the tests of the workspace
# are, and with what they have built; what is shipped is built by the workflow.
. .ci/lib.sh

python=${TERCET_PYTHON:-python3}
"$python" -c 'import gguf, ipykernel, matplotlib, maturin, mypy, nbclient, pytest, sklearn' 2>/dev/null ||
    skip "no maturin, mypy, pytest, scikit-learn, gguf, matplotlib, nbclient, ipykernel; .ci/references"
folder=target/python
rm -rf "$folder"
mkdir -p "$folder/there"
# The package has the features of its pyproject.toml, and the library those of the workspace; `clippy:features` lints the package alone.
CARGO=$PWD/.ci/maturin_cargo "$python" -m maturin build --quiet --manifest-path host/python/Cargo.toml --locked --profile dev \
    --auditwheel skip --interpreter "$python" --target-dir target --out "$folder"
wheel=("$folder"/tercet-*.whl)

"$python" -m venv "$folder/empty"
"$folder/empty/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "${wheel[0]}"
"$folder/empty/bin/python" host/python/tests/examples.py

"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$folder/there" "${wheel[0]}"
MYPYPATH=$folder/there "$python" -m mypy --config-file host/python/pyproject.toml --cache-dir "$folder/mypy" -p tercet
# The command of the workspace's tests, if they were run.
[[ -x target/debug/tercet ]] || cargo build --locked -p tercet-gpu --bin tercet
# The emulated device, if the tests of CUDA were run.
if [[ -e target/emulator/plain/libcuda.so ]]; then
    export TERCET_DRIVER=$PWD/target/emulator/plain
fi
PYTHONPATH=$folder/there TERCET_COMMAND=target/debug/tercet "$python" -m pytest -q -p no:cacheprovider host/python/tests |
    tee target/ci/python.out
note "$(sed -n 's/^\([0-9]* passed\).*/\1/p' target/ci/python.out), wheel of $(stat -c %s "${wheel[0]}") bytes, not optimized across crates"
