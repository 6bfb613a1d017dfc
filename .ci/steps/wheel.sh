#!/usr/bin/env bash
# The package for Python on another processor, emulated: its wheel beside NumPy and pytest, with Debian's interpreter.
# Tests that need another package are skipped. Only by name: from nothing it takes two cores 2 min to build and 1 min to
# test, and the workflow has such a machine. wheel.sh aarch64-unknown-linux-gnu
. .ci/lib.sh

target=$1
[[ $target == aarch64-unknown-linux-gnu ]] || {
    echo "wheel.sh aarch64-unknown-linux-gnu" >&2
    exit 2
}
python=${TERCET_PYTHON:-python3}
"$python" -c 'import maturin' 2>/dev/null || skip "no maturin; .ci/references"
need qemu-aarch64 "apt-get install qemu-user"
need aarch64-linux-gnu-gcc "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
need apt-get "Debian has the interpreter"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -e $keys ]] || skip "no $keys; Debian has the interpreter"

folder=target/python-$target
mkdir -p "$folder"

# Debian's interpreter and its libraries, 7.5 MB: apt gets them for that processor, beside this machine's own packages and
# without root. They are unpacked and kept, as installed tools are.
root=$folder/root
packages=(python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 libexpat1 libffi8 zlib1g)
if [[ ! -e $root/complete ]]; then
    apt=$PWD/$folder/apt
    rm -rf "$root" "$apt"
    mkdir -p "$root" "$apt"/{lists/partial,archives/partial}
    touch "$apt/status"
    echo "deb [signed-by=$keys] http://deb.debian.org/debian bookworm main" >"$apt/sources"
    cat >"$apt/conf" <<APT
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Sandbox::User "";
Dir::Etc::SourceList "$apt/sources";
Dir::Etc::SourceParts "-";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
APT
    (
        cd "$apt"
        export APT_CONFIG=$apt/conf
        apt-get update -qq
        apt-get download -qq "${packages[@]}"
    )
    for package in "$apt"/*.deb; do
        dpkg -x "$package" "$root"
    done
    rm -rf "$apt"
    touch "$root/complete"
fi
run=(qemu-aarch64 -L "$PWD/$root" "$PWD/$root/usr/bin/python3.11")

rm -rf "$folder/wheel" "$folder/there"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
with_target "$target" "$python" -m maturin build --quiet --manifest-path host/python/Cargo.toml --locked --profile dev \
    --auditwheel skip --target "$target" --interpreter "$python" --out "$folder/wheel"
wheel=("$folder"/wheel/tercet-*.whl)
mapfile -t others < <(grep -E '^(numpy|pytest)==' .ci/references.txt)
"$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --python-version 3.11 --implementation cp \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform linux_aarch64 \
    --target "$folder/there" "${wheel[0]}" "${others[@]}"

export PYTHONPATH=$PWD/$folder/there
note "$("${run[@]}" -c 'import platform, tercet; print(platform.machine(), *tercet.info()["backends"])')"
# The suite of `verify` is the step `conformance`'s, and a leak would be one here too.
"${run[@]}" -m pytest -q -p no:cacheprovider host/python/tests \
    --deselect tests/test_verify.py --deselect tests/test_quantize.py::test_nothing_leaks |
    tee target/ci/wheel.out
note "$(sed -n 's/^\([0-9]* passed.*\) in .*/\1/p' target/ci/wheel.out)"
