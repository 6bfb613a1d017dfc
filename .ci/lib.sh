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

# released VERB ARGUMENTS…: the programs of .ci/desktop for release on this machine, in one folder for all steps: the library is compiled
# once, for what they take of it and not for what tests and the command do.
released=target/desktop/release
released() {
    local verb=$1
    shift
    # In one piece, as it is counted and as users build it.
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 cargo "$verb" --locked -q --release --manifest-path .ci/desktop/Cargo.toml \
        --target-dir "${released%/*}" --features measure "$@"
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

# How this machine builds for TARGET: with `rustup`, as users do, with what .ci/sysroot made (`sysroot`), or not at all. TERCET_CROSS
# forces one.
compiler_for() {
    if [[ ${TERCET_CROSS:-rustup} == rustup ]] && rustup target list --installed 2>/dev/null | grep -qx "$1"; then
        echo rustup
    elif [[ ${TERCET_CROSS:-sysroot} == sysroot ]] && .ci/sysroot --path "$1" >/dev/null 2>&1; then
        echo sysroot
    fi
}

# need_target TARGET…
need_target() {
    local target
    for target; do
        [[ $(compiler_for "$target") ]] || skip "no standard library for $target; rustup target add $target"
    done
}

# need_clippy TARGET
need_clippy() {
    need_target "$1"
    if [[ $(compiler_for "$1") == sysroot && ! -x $(.ci/sysroot --path "$1")/bin/cargo-clippy ]]; then
        skip "no clippy beside that compiler; rustup component add clippy, for Debian's apt-get install rust-web-clippy"
    fi
}

# with_target TARGET COMMAND…: a command that finds a toolchain with TARGET and builds into target/cross, or into CARGO_TARGET_DIR.
with_target() {
    local target=$1
    shift
    need_target "$target"
    (
        export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/cross}
        # As firmware/, whose figures need the lines: workspaces whose profiles differ in no more share what they depend on.
        if [[ $target == *-none-* ]]; then
            set -- env "CARGO_PROFILE_RELEASE_DEBUG=${CARGO_PROFILE_RELEASE_DEBUG:-line-tables-only}" "$@"
        fi
        if [[ $(compiler_for "$target") == sysroot ]]; then
            sysroot=$(.ci/sysroot --path "$target")
            # Clippy, which is called in the compiler's place, asks the environment.
            export PATH=$sysroot/bin:$PATH SYSROOT=$sysroot
            # Cargo does not see that a library is another one.
            if [[ $(cat "$CARGO_TARGET_DIR/sysroot" 2>/dev/null) != "$sysroot" ]]; then
                rm -rf "$CARGO_TARGET_DIR"
                mkdir -p "$CARGO_TARGET_DIR"
                echo "$sysroot" >"$CARGO_TARGET_DIR/sysroot"
            fi
        fi
        "$@"
    )
}

# linted TARGET COMMAND…: as `with_target`, and what is built lints the workspace's own crates, warnings denied: Clippy compiles in the
# compiler's place, so that nothing is checked first and then compiled.
linted() {
    local driver
    need_clippy "$1"
    driver=$(rustc --print sysroot)/bin/clippy-driver
    [[ $(compiler_for "$1") != sysroot ]] || driver=$(.ci/sysroot --path "$1")/bin/clippy-driver
    RUSTC_WORKSPACE_WRAPPER=$driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__ with_target "$@"
}

# cross TARGET VERB CARGO-ARGUMENTS…: cargo for another target.
cross() {
    local target=$1 verb=$2
    shift 2
    with_target "$target" cargo "$verb" --locked --target "$target" "$@"
}

# dependent CORE TARGET VERB CARGO-ARGUMENTS…: as `cross`, of .ci/dependent with the sources in CORE as its tercet-core.
dependent() {
    local core=$1 target=$2 verb=$3
    shift 3
    cross "$target" "$verb" --manifest-path .ci/dependent/Cargo.toml --config "patch.crates-io.tercet-core.path='$PWD/$core'" "$@"
}

# desktop TARGET VERB CARGO-ARGUMENTS…: as `cross`, of .ci/desktop.
desktop() {
    local target=$1 verb=$2
    shift 2
    cross "$target" "$verb" --manifest-path .ci/desktop/Cargo.toml "$@"
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
    need_target "$(board_target "$1")"
}

# All tests but core's, which are the step `core`: what they compute with would have features more here, and everything that takes it be
# compiled once for them and once without.
workspace=(test --locked --workspace --exclude tercet-core)

# The `tercet` command as the tests build it: for one package alone Cargo would choose other features of what the library depends
# on, and compile it once more.
tercet() {
    cargo "${workspace[@]}" -q --test command --no-run
    target/debug/tercet "$@"
}

# runner TARGET ARGUMENT…: `cargo firmware ARGUMENT…` with a toolchain that has TARGET, which lints the programs. The tool itself is built
# as users build it.
runner() {
    local target=$1
    shift
    cargo build --locked -q --manifest-path firmware/runner/Cargo.toml --target-dir target/firmware-runner
    linted "$target" target/firmware-runner/debug/firmware "$@"
}

# firmware BOARD[:TARGET] PROGRAM [OPTION…]: `cargo firmware`, which builds a program and runs it on an emulated board.
firmware() {
    need_board "$1"
    runner "$(board_target "$1")" "$@"
}

# images BOARD[:TARGET]…: the conformance suite's images of boards, each with how it is run, in $images. Those that are younger than all
# that they are made of are kept.
images=target/images
images() {
    local board folder
    for board; do
        need_board "$board"
        folder=$images/${board/:/-}
        if [[ ! -e $folder/board.json || $(find core/src core/conformance.txt firmware/{src,boards,build.rs,Cargo.toml,Cargo.lock} -newer "$folder/board.json" -print -quit) ]]; then
            runner "$(board_target "$board")" images "$images" "$board"
        fi
    done
}

# agree FILE: the table printed there is the committed one; its comment lines may say more.
agree() {
    local table=target/ci/table.txt
    grep -v '^#' core/conformance.txt | if [[ ${2:-} ]]; then grep -vE '/(threes|sinks|517|639|130|step) |llama/batch '; else cat; fi >"$table.$$"
    diff "$table.$$" <(grep -v '^#' "$1" | tr -d '\r') || return 1
    note "$(wc -l <"$table.$$") digests agree"
    rm "$table.$$"
}

# tests_in FILE: how many tests passed by cargo's closing lines there; none at all is a failure.
tests_in() {
    awk '/^test result:/ { n += $4 } END { print n + 0; exit n == 0 }' "$1"
}

# device_tests [WORD…]: the tests on a device, all that are named `cuda…`; those whose names have a word, or but for them (`--skip`). They are
# chosen from the whole workspace, whose features are those of `.ci/test test`: nothing is built again.
device_tests() {
    cargo "${workspace[@]}" --test 'cuda*' -- "$@"
}

# The modules of those that stand above the engine, and launch no kernel of their own.
above=(cuda_batch:: cuda_cluster_calls:: cuda_dispatch:: cuda_driver:: cuda_room:: cuda_observe::)

# tests_above: those.
tests_above() {
    device_tests "${above[@]}"
}

# tests_of_engine [NAME…]: the others, but for those whose names begin with cuda_NAME.
tests_of_engine() {
    local words=("$@") skips=() word
    for word in "${above[@]}" "${words[@]/#/cuda_}"; do
        skips+=(--skip "$word")
    done
    device_tests "${skips[@]}"
}
