# shellcheck shell=bash
# What the steps share. `.ci/test` starts each step as `bash .ci/steps/NAME.sh [ARGUMENT]` in the repository's root.
set -euo pipefail
mkdir -p target/ci

# A step that lacks a tool says which and how to get it; `.ci/test` gathers these lines.
# 77 is the status by which automake and ctest know a skipped test.
skip() {
    printf 'skipped: %s: %s\n' "${TERCET_STEP:-step}" "$*" | tee -a "${TERCET_SKIPS:-/dev/null}"
    exit 77
}

# The manifest of every workspace here: where a lock file lies.
workspaces() {
    git ls-files -- '*Cargo.lock' | sed 's/lock$/toml/'
}

# released TARGETS…: builds examples or programs for release, once for all steps: not across crates, which would compile the library anew
# for each, and chosen from the whole workspace, whose features are the same for all.
released() {
    CARGO_PROFILE_RELEASE_LTO=off cargo build --locked -q --release --workspace "$@"
}

# need COMMAND HOW-TO-GET-IT
need() {
    command -v "$1" >/dev/null || skip "no $1; $2"
}

# A figure for the summary, such as how many digests agreed.
note() {
    printf '%s\n' "$*" >>"${TERCET_NOTES:-/dev/null}"
    printf 'note: %s\n' "$*"
}

# Debian's compiler comes with its library's source, so it builds for any target where rustup has none.
debian_has_std() {
    [[ -x /usr/bin/cargo && -e "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/core/Cargo.toml" ]] 2>/dev/null
}

# How this machine builds for TARGET: `rustup` (as users do), `debian`, or nothing. TERCET_CROSS forces one.
compiler_for() {
    if [[ ${TERCET_CROSS:-rustup} == rustup ]] && rustup target list --installed 2>/dev/null | grep -qx "$1"; then
        echo rustup
    elif [[ ${TERCET_CROSS:-debian} == debian ]] && debian_has_std; then
        echo debian
    fi
}

# cross TARGET LIBRARIES CARGO-ARGUMENTS…: cargo for another target. LIBRARIES are what -Zbuild-std must build where
# Debian's compiler stands in for rustup's. Artefacts lie under $cross_target/TARGET.
cross() {
    local target=$1 libraries=$2
    shift 2
    local verb=$1
    shift
    case $(compiler_for "$target") in
    rustup)
        cross_target=${CARGO_TARGET_DIR:-target}
        CARGO_TARGET_DIR=$cross_target cargo "$verb" --target "$target" "$@"
        ;;
    debian)
        # Its own folder: two compilers would take turns at rebuilding one.
        cross_target=target/debian
        # Debian's rustc has no linker for bare metal; rustup's own does the job.
        local lld
        lld=$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
        (
            # flip-link looks for rust-lld by name.
            export PATH=/usr/bin:$PATH:${lld%/*} RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$cross_target
            case $target in
            *-none-* | wasm32-*) export "CARGO_TARGET_$(tr 'a-z.-' 'A-Z__' <<<"$target")_LINKER=$lld" ;;
            esac
            cargo "$verb" --target "$target" -Zbuild-std="$libraries" "$@"
        )
        ;;
    *) skip "no standard library for $target; rustup target add $target" ;;
    esac
}

# dependent CORE TARGET LIBRARIES CARGO-ARGUMENTS…: as `cross`, of .ci/dependent with the sources in CORE as its tercet-core.
dependent() {
    local core=$1 target=$2 libraries=$3 verb=$4
    shift 4
    cross "$target" "$libraries" "$verb" --locked --manifest-path .ci/dependent/Cargo.toml \
        --config "patch.crates-io.tercet-core.path='$PWD/$core'" "$@"
}

# board_target BOARD[:TARGET]: TARGET, or what firmware/boards/BOARD.toml compiles for.
board_target() {
    case $1 in
    *:*) echo "${1#*:}" ;;
    *) sed -n 's/^target = "\(.*\)"$/\1/p' "firmware/boards/$1.toml" ;;
    esac
}

# need_board BOARD[:TARGET]
need_board() {
    case $1 in
    rv32*) need qemu-system-riscv32 "apt-get install qemu-system-misc" ;;
    *) need qemu-system-arm "apt-get install qemu-system-arm" ;;
    esac
}

# The `tercet` command as the tests build it: for one package alone Cargo would choose other features of what the library depends
# on, and compile it once more.
tercet() {
    cargo test --locked -q --workspace --test command --no-run
    target/debug/tercet "$@"
}

# The tool of firmware/runner.
runner() {
    cargo run --locked -q --manifest-path firmware/runner/Cargo.toml --target-dir target/firmware-runner -- "$@"
}

# image BOARD[:TARGET] PROGRAM: builds a program of firmware/. The image is $image, and beside it lies how it is run.
image() {
    local board=$1 program=$2 target arguments
    target=$(board_target "$board")
    arguments=$(runner arguments "$board" "$program")
    mapfile -t arguments <<<"$arguments"
    image=target/firmware/${board/:/-}/$program
    mkdir -p "${image%/*}"
    # Boards of one target build into one place; steps that run at once take turns.
    exec 9>target/firmware/lock
    flock 9
    cross "$target" core build -q "${arguments[@]}"
    cp "$cross_target/$target/release/$program" "$image"
    runner describe "$board" >"${image%/*}/board.json"
    exec 9>&-
}

# firmware BOARD[:TARGET] PROGRAM [OPTION…]: runs a program of firmware/ on an emulated board; the options are those of
# `cargo firmware`, which builds as users do, while here `cross` does. The image is $image.
firmware() {
    local board=$1 program=$2
    shift 2
    need_board "$board"
    image "$board" "$program"
    runner "$board" "$program" --image "$image" "$@"
}

# agree FILE: the table printed there is the committed one; its comment lines may say more.
agree() {
    diff <(grep -v '^#' core/conformance.txt) <(grep -v '^#' "$1" | tr -d '\r') || return 1
    note "$(grep -cv '^#' core/conformance.txt) digests agree"
}

# tests_in FILE: how many tests passed by cargo's closing lines there; none at all is a failure.
tests_in() {
    awk '/^test result:/ { n += $4 } END { print n + 0; exit n == 0 }' "$1"
}
