//! `tercet verify --firmware`: folders of images, and emulators that stand for QEMU. `.ci/test verify` has the real
//! ones.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tercet_core::conformance;

use super::signals::interruptible;
use super::support::{Folder, finish};

/// A description as `cargo firmware images` writes it.
const BOARD: &str = r#"{"board": "NAME", "about": "A board.", "target": "thumbv7em-none-eabihf", "runner": ["qemu-system-arm", "-M",
    "mps2-an386", "-nographic", "-monitor", "none", "-semihosting-config", "enable=on,target=native", "-kernel"],
    "images": ["conformance_points", "conformance_weights"]}"#;

/// In QEMU's place: what comes after the head of an image is a script.
const EMULATOR: &str = r#"#!/bin/sh
[ "$1" = --version ] && exit
for image; do :; done
tail -c +25 "$image" >"$image.sh"
exec sh "$image.sh"
"#;

/// The first bytes of a program for an ARM: 32 bits, little-endian, an executable.
fn image(machine: u8, script: &str) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x01\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([2, 0, machine, 0, 1, 0, 0, 0]);
    bytes.extend(script.as_bytes());
    bytes
}

/// What boards are to print of the committed table.
fn entries() -> impl Iterator<Item = (&'static str, u64)> {
    conformance::entries().filter(|(name, _)| conformance::is_small(name))
}

/// Lines of the committed table, from one on: as `printf` writes them, a comment after each.
fn lines(from: usize, to: usize) -> String {
    let lines = entries().enumerate();
    let lines = lines.filter(|(at, _)| (from..to).contains(at));
    lines
        .map(|(_, (name, digest))| {
            format!("echo {name} {digest:016x}; echo '# 8 bytes of stack'\n")
        })
        .collect()
}

/// A folder of boards, with an emulator.
struct Boards(Folder);

impl Boards {
    fn new() -> Self {
        let boards = Self(Folder::new());
        fs::create_dir(boards.0.path("bin")).unwrap();
        let emulator = boards.0.path("bin/qemu-system-arm");
        fs::write(&emulator, EMULATOR).unwrap();
        fs::set_permissions(emulator, fs::Permissions::from_mode(0o755)).unwrap();
        boards
    }

    /// A board whose first image prints the table but for its last `short` lines and then does as `script` says.
    fn board(&self, name: &str, script: &str, short: usize) -> PathBuf {
        let folder = self.0.path("images").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("board.json"), BOARD.replace("NAME", name)).unwrap();
        let count = entries().count();
        let points = lines(40, count - short) + script;
        fs::write(folder.join("conformance_points"), image(40, &points)).unwrap();
        fs::write(folder.join("conformance_weights"), image(40, &lines(0, 40))).unwrap();
        folder
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self
            .0
            .command(&[&["verify", "--firmware"], arguments].concat());
        let bin = self.0.path("bin");
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command
    }

    /// The line of a folder that is refused before any work.
    fn refused(&self) -> String {
        let run = finish(&mut self.command(&["images"]));
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{run:?}");
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        run.err
    }
}

#[test]
fn boards_stand_beside_engines_and_what_is_wrong_with_them_is_told() {
    let boards = Boards::new();
    let (name, digest) = entries().last().unwrap();
    boards.board("fine", "", 0);
    boards.board(
        "other",
        &format!("echo {name} {:016x}; exit 1", digest ^ 1),
        1,
    );
    boards.board("short", "", 2);
    boards.board("slow", "exec sleep 600", 0);
    boards.board("broken", "echo 'cannot be: burnt' >&2; exit 7", 3);
    boards.board("flood", "exec yes", 0);
    let started = Instant::now();
    let run = finish(&mut boards.command(&["images", "--limit", "3", "--json"]));
    assert!(started.elapsed() < Duration::from_secs(300));
    assert_eq!(run.code, Some(1), "{run:?}");
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["agree"], false);
    let engines = found["engines"].as_array().unwrap();
    let board = |name: &str| {
        let name = format!("emulated {name} (thumbv7em-none-eabihf)");
        engines.iter().find(|it| it["engine"] == name).unwrap()
    };
    let all = entries().count();
    let fine = board("fine");
    assert_eq!(fine["operations"], all);
    assert_eq!(fine["agreed"], all);
    assert!(fine["failed"].is_null());
    assert_eq!(board("other")["differ"], serde_json::json!([name]));
    assert_eq!(board("other")["operations"], all);
    for (name, reason) in [
        ("other", "conformance_points: it failed: exit status: 1"),
        ("short", "no image printed "),
        (
            "slow",
            "conformance_points: stopped after 3 s; the last digest was that of ",
        ),
        (
            "broken",
            "conformance_points: it failed: cannot be: burnt; the last digest was that of ",
        ),
        ("flood", "conformance_points: "),
    ] {
        let failed = board(name)["failed"].as_str().unwrap();
        assert!(failed.starts_with(reason), "{name}: {failed}");
        assert!(run.err.contains(failed), "{}", run.err);
    }
    assert_eq!(board("broken")["operations"], all - 3);
    assert!(run.err.starts_with(&format!(
        "error: results differ from the released ones: {name}; "
    )));
    // The engines of this machine are not to blame.
    assert!(engines[0]["failed"].is_null() && engines[0]["differ"] == serde_json::json!([]));
    let differs = found["digests"].as_array().unwrap();
    let differs = differs.iter().find(|it| it["operation"] == name).unwrap();
    assert_eq!(
        differs["differ"][0]["found"],
        format!("{:016x}", digest ^ 1)
    );
}

#[test]
fn a_folder_of_one_board_and_people() {
    let boards = Boards::new();
    boards.board("alone", "", 0);
    let run = finish(&mut boards.command(&["images/alone"]));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    let line = run
        .out
        .lines()
        .find(|line| line.starts_with("emulated alone"));
    let cells: Vec<_> = line.unwrap().split_whitespace().collect();
    let all = entries().count().to_string();
    assert_eq!(cells[3..5], [&*all, &*all]);
    assert!(
        run.out.contains("all digests are the released ones, on "),
        "{}",
        run.out
    );
}

#[test]
fn what_cannot_be_run_is_refused_before_any_work() {
    let boards = Boards::new();
    assert!(boards.refused().contains("images: cannot read: "));
    fs::create_dir(boards.0.path("images")).unwrap();
    let none = boards.refused();
    assert!(
        none.contains("images: no board here") && none.contains("cargo firmware images"),
        "{none}"
    );

    let folder = boards.board("one", "", 0);
    let points = folder.join("conformance_points");
    fs::write(&points, image(243, "")).unwrap();
    let other = boards.refused();
    assert!(
        other.contains("conformance_points: an image for qemu-system-riscv32"),
        "{other}"
    );
    fs::write(&points, "#!/bin/sh\nrm -r /\n").unwrap();
    assert!(
        boards
            .refused()
            .contains("conformance_points: not an ELF image")
    );
    fs::remove_file(&points).unwrap();
    assert!(
        boards
            .refused()
            .contains("conformance_points: cannot read: ")
    );
    fs::create_dir(&points).unwrap();
    assert!(
        boards
            .refused()
            .contains("conformance_points: not a regular file")
    );

    for (from, to, told) in [
        (
            "\"qemu-system-arm\"",
            "\"./qemu-system-arm\"",
            "runner: \"./qemu-system-arm\" is not one of ",
        ),
        (
            "\"-nographic\"",
            "\"-drive\"",
            "runner: \"-drive\" \"-monitor\" is not an option that a board may have",
        ),
        ("{", "", "it is not the description of a board: "),
    ] {
        fs::write(folder.join("board.json"), BOARD.replacen(from, to, 1)).unwrap();
        let line = boards.refused();
        assert!(
            line.contains("board.json: ") && line.contains(told),
            "{line}"
        );
    }
    fs::write(folder.join("board.json"), " ".repeat(1 << 17)).unwrap();
    assert!(
        boards
            .refused()
            .contains("too long for the description of a board")
    );
}

#[test]
fn an_emulator_that_is_missing_is_named_with_its_package() {
    let boards = Boards::new();
    boards.board("one", "", 0);
    fs::remove_file(boards.0.path("bin/qemu-system-arm")).unwrap();
    let mut command = boards.command(&["images"]);
    let run = finish(command.env("PATH", boards.0.path("bin")));
    let line = "error: no qemu-system-arm: apt-get install qemu-system-arm, brew install qemu, or https://www.qemu.org/download\n";
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (Some(1), "", line)
    );
}

#[test]
fn an_interrupt_ends_the_emulators() {
    let boards = Boards::new();
    let slow = "echo $$ >pid; mv pid id; exec sleep 600";
    boards.board("one", slow, 0);
    let mut command = boards.command(&["images"]);
    command.stderr(Stdio::null());
    let mut child = interruptible(&mut command).spawn().unwrap();
    let started = Instant::now();
    let id = loop {
        if let Ok(id) = fs::read_to_string(boards.0.path("id")) {
            break id.trim().to_owned();
        }
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "no emulator began"
        );
        sleep(Duration::from_millis(10));
    };
    let lives = || {
        Command::new("kill")
            .args(["-0", &id])
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    };
    assert!(lives());
    let sent = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let ended = Instant::now();
    while lives() {
        assert!(
            ended.elapsed() < Duration::from_secs(20),
            "the emulator goes on"
        );
        sleep(Duration::from_millis(10));
    }
}
