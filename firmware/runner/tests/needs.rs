//! Checks that the needs of a run are looked for before anything is built. The machines are made up, because the
//! content of this one is unknown.
//!
//! A machine is a `PATH` and a sysroot. Its cargo prints its arguments, and fails.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The program that `cargo firmware` starts, and the tool.
const START: &str = env!("CARGO_BIN_EXE_start");
const TOOL: &str = env!("CARGO_BIN_EXE_firmware");

const RUSTC: &str = r#"#!/bin/sh
for target; do :; done
case $target in
*-none-*) printf '%s\n' "$SYSROOT" "$SYSROOT/lib/rustlib/$target/lib" machine ;;
*) echo "error: no specification of $target" >&2 && exit 1 ;;
esac
"#;

const CARGO: &str = "#!/bin/sh\necho cargo \"$@\"\nexit 70\n";

const EMULATOR: &str = "#!/bin/sh\nexit 0\n";

/// Returns the folder of all parts of machines, written once and before any process is started.
fn parts() -> &'static Path {
    static PARTS: OnceLock<PathBuf> = OnceLock::new();
    PARTS.get_or_init(|| {
        let parts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("needs");
        let _ = fs::remove_dir_all(&parts);
        let write = |name: &str, text: &str| {
            let file = parts.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("rust/rustc", RUSTC);
        write("cargo", CARGO);
        write("qemu/qemu-system-arm", EMULATOR);
        write("qemu/qemu-system-riscv32", EMULATOR);
        for rust in ["toolchains/stable-x", "toolchains/nightly-x", "usr"] {
            write(&format!("{rust}/lib/rustlib/machine/bin/rust-lld"), "");
        }
        for rust in ["toolchains/one-x", "usr-one"] {
            write(&format!("{rust}/lib/rustlib/machine/bin/rust-lld"), "");
            let library = "thumbv7em-none-eabihf/lib/libcore-0.rlib";
            write(&format!("{rust}/lib/rustlib/{library}"), "");
        }
        parts
    })
}

/// A machine with these folders in its `PATH`, and with this sysroot.
struct Machine(&'static [&'static str], &'static str);

const BARE: Machine = Machine(&["rust"], "toolchains/stable-x");

impl Machine {
    fn command(&self, program: &str, line: &str) -> Command {
        let path: Vec<String> = self.0.iter().map(|folder| part(folder)).collect();
        let mut command = Command::new(program);
        command
            .args(line.split_whitespace())
            .env_clear()
            .env("PATH", path.join(":"))
            .env("SYSROOT", part(self.1))
            .env("CARGO", part("cargo"))
            .env("HOME", part("home"));
        command
    }

    fn run(&self, program: &str, line: &str) -> Output {
        self.command(program, line).output().unwrap()
    }

    /// Returns the report of missing parts; checks that nothing was built.
    fn refused(&self, program: &str, line: &str) -> String {
        let output = self.run(program, line);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(output.stdout, b"", "{output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        let head = "error: nothing was built or run, since this is missing:\n";
        told.strip_prefix(head).expect(&told).to_owned()
    }

    /// Checks that both the start and the tool refuse, in the same words.
    fn both_refuse(&self, line: &str) -> String {
        let told = self.refused(START, line);
        assert_eq!(self.refused(TOOL, line), told);
        told
    }
}

fn part(name: &str) -> String {
    parts().join(name).to_str().unwrap().to_owned()
}

/// Returns the arguments that the start gave cargo.
fn went_on(output: &Output) -> String {
    assert_eq!(output.stderr, b"", "{output:?}");
    assert_eq!(output.status.code(), Some(70), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn all_that_is_missing_is_told_at_once() {
    let expected = format!(
        "  the standard library for thumbv7em-none-eabihf in {}/lib/rustlib\n      \
         rustup target add thumbv7em-none-eabihf\n  \
         qemu-system-arm in PATH\n      \
         apt-get install qemu-system-arm, brew install qemu, or https://www.qemu.org/download\n",
        part("toolchains/stable-x")
    );
    assert_eq!(BARE.both_refuse("an386 motion"), expected);
    assert_eq!(BARE.both_refuse("--limit 9 an386 digits --json"), expected);
}

#[test]
fn every_board_s_target_and_emulator_are_looked_for() {
    let listed = Command::new(TOOL)
        .args(["list", "--json"])
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let boards = listed["boards"].as_array().unwrap();
    assert!(boards.len() > 1);
    for board in boards {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let told = BARE.both_refuse(&format!("{} nothing", text(&board["name"])));
        let target = format!("      rustup target add {}\n", text(&board["target"]));
        assert!(told.contains(&target), "{told}");
        let emulator = format!("  {} in PATH\n", text(&board["runner"][0]));
        assert!(told.contains(&emulator), "{told}");
    }
    let other = BARE.both_refuse("an386:thumbv7em-none-eabi nothing");
    assert!(
        other.contains("rustup target add thumbv7em-none-eabi\n"),
        "{other}"
    );
}

#[test]
fn an_image_that_is_there_needs_an_emulator_alone() {
    let told = BARE.both_refuse("an386 motion --image nowhere");
    assert!(told.starts_with("  qemu-system-arm in PATH\n"), "{told}");
    let machine = Machine(&["qemu"], "usr");
    let on = went_on(&machine.run(START, "an386 motion --image=nowhere"));
    assert!(on.ends_with(" -- an386 motion --image=nowhere\n"), "{on}");
}

#[test]
fn what_neither_builds_nor_runs_needs_nothing() {
    let machine = Machine(&[], "usr");
    for line in [
        "list --json",
        "table",
        "describe an386",
        "arguments an386 motion",
    ] {
        let on = went_on(&machine.run(START, line));
        assert!(on.ends_with(&format!(" -- {line}\n")), "{on}");
        assert!(machine.run(TOOL, line).status.success());
    }
}

#[test]
fn where_all_is_there_the_tool_is_built_and_told_the_same() {
    for sysroot in ["toolchains/one-x", "usr-one"] {
        let machine = Machine(&["rust", "qemu"], sysroot);
        let on = went_on(&machine.run(START, "an386 motion --limit 9"));
        assert!(
            on.starts_with("cargo run --quiet --locked --bin firmware "),
            "{on}"
        );
        assert!(on.ends_with(" -- an386 motion --limit 9\n"), "{on}");
        // The tool proceeds to building.
        let output = machine.run(TOOL, "an386 motion --limit 9");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            told.starts_with("error: motion for an386: cargo build: "),
            "{told}"
        );
    }
}

#[test]
fn images_of_boards_that_are_named_want_all_their_targets_first() {
    let folder = part("never");
    let machine = Machine(&["rust"], "toolchains/one-x");
    let told = machine.both_refuse(&format!("images {folder} an386 microbit rv32imc an385"));
    let targets = "thumbv6m-none-eabi riscv32imc-unknown-none-elf thumbv7m-none-eabi";
    let how = format!("      rustup target add --toolchain one-x {targets}\n");
    assert!(told.ends_with(&how), "{told}");
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(!Path::new(&folder).exists());
}

#[test]
fn images_of_all_boards_are_refused_only_where_no_target_is_there() {
    let line = format!("images {}", part("images"));
    let told = BARE.both_refuse(&line);
    for target in ["thumbv6m-none-eabi", "riscv32imac-unknown-none-elf"] {
        assert!(told.contains(target), "{told}");
    }
    assert_eq!(told.lines().count(), 2, "{told}");
    let machine = Machine(&["rust"], "usr-one");
    went_on(&machine.run(START, &line));
    // The skipped boards are listed before anything is built; there this machine's cargo ends the run.
    let output = machine.run(TOOL, &line);
    let told = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].starts_with("left out an385, an505, an547, microbit, "),
        "{told}"
    );
    assert!(
        lines[2].contains("rustup target add thumbv7m-none-eabi "),
        "{told}"
    );
    assert!(
        lines[3].starts_with("error: conformance_models for an386: "),
        "{told}"
    );
    assert_eq!(lines.len(), 4, "{told}");
}

#[test]
fn who_builds_the_library_or_has_another_is_not_refused() {
    let machine = Machine(&["rust", "qemu"], "toolchains/stable-x");
    for (name, value) in [
        ("CARGO_UNSTABLE_BUILD_STD", "core"),
        ("RUSTFLAGS", "-Copt-level=1 --sysroot /mine"),
        (
            "CARGO_TARGET_THUMBV7EM_NONE_EABIHF_RUSTFLAGS",
            "--sysroot=/mine",
        ),
    ] {
        went_on(
            &machine
                .command(START, "an386 motion")
                .env(name, value)
                .output()
                .unwrap(),
        );
    }
    let home = parts().join("builds-std");
    fs::create_dir_all(&home).unwrap();
    fs::write(
        home.join("config.toml"),
        "[unstable]\nbuild-std = ['core']\n",
    )
    .unwrap();
    went_on(
        &machine
            .command(START, "an386 motion")
            .env("CARGO_HOME", home)
            .output()
            .unwrap(),
    );
}

#[test]
fn the_compiler_that_cargo_is_told_of_is_asked() {
    let machine = Machine(&["qemu"], "usr-one");
    let told = machine.both_refuse("an386 motion");
    assert!(told.starts_with("  rustc, the compiler: "), "{told}");
    assert!(told.ends_with("\n      https://rustup.rs\n"), "{told}");
    for name in ["RUSTC", "CARGO_BUILD_RUSTC"] {
        let mut command = machine.command(START, "an386 motion");
        went_on(&command.env(name, part("rust/rustc")).output().unwrap());
    }
}

#[test]
fn a_rust_is_told_by_its_folder_and_helped_in_its_own_way() {
    let machine = Machine(&["rust", "qemu"], "usr");
    let told = machine.both_refuse("an386 motion");
    let what = format!(
        "  the standard library for thumbv7em-none-eabihf in {}/lib/rustlib\n",
        part("usr")
    );
    assert!(told.starts_with(&what), "{told}");
    assert!(
        told.ends_with("with a Rust of https://rustup.rs: this one is not rustup's\n"),
        "{told}"
    );
    let machine = Machine(&["rust", "qemu"], "toolchains/nightly-x");
    let told = machine.both_refuse("an386 motion");
    let how = "\n      rustup target add --toolchain nightly-x thumbv7em-none-eabihf\n";
    assert!(told.ends_with(how), "{told}");
}

#[test]
fn a_target_that_the_compiler_does_not_know_is_told_in_its_words() {
    let machine = Machine(&["rust", "qemu"], "usr");
    let told = machine.both_refuse("an386:thumbv9 motion");
    assert!(told.starts_with("  a compiler for thumbv9\n"), "{told}");
    assert!(
        told.ends_with(": error: no specification of thumbv9\n"),
        "{told}"
    );
}
