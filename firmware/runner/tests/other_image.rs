//! Checks `--image` with programs that `firmware` does not have. The emulator is made up: it prints the name of the
//! image's file and ends with status 7.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use object::write::{Object, StandardSection};
use object::{Architecture, BinaryFormat, Endianness};

const EMULATOR: &str = "#!/bin/sh\nfor image; do :; done\necho \"ran ${image##*/}\"\nexit 7\n";

/// Returns the folder of emulator and image, written once and before any process is started. The image has 100 bytes
/// of code and 1000 bytes of statics.
fn parts() -> &'static Path {
    static PARTS: OnceLock<PathBuf> = OnceLock::new();
    PARTS.get_or_init(|| {
        let parts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("other_image");
        fs::create_dir_all(&parts).unwrap();
        let emulator = parts.join("qemu-system-arm");
        fs::write(&emulator, EMULATOR).unwrap();
        fs::set_permissions(emulator, fs::Permissions::from_mode(0o755)).unwrap();
        let mut image = Object::new(BinaryFormat::Elf, Architecture::Arm, Endianness::Little);
        let text = image.section_id(StandardSection::Text);
        image.append_section_data(text, &[0; 100], 4);
        let statics = image.section_id(StandardSection::UninitializedData);
        image.append_section_bss(statics, 1000, 4);
        fs::write(parts.join("other.elf"), image.write().unwrap()).unwrap();
        parts
    })
}

/// Runs `cargo firmware an386` with these arguments and the image.
fn run(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firmware"))
        .arg("an386")
        .args(arguments.split_whitespace())
        .args(["--image", "other.elf"])
        .current_dir(parts())
        .env_clear()
        .env("PATH", parts())
        .output()
        .unwrap()
}

#[test]
fn an_image_of_any_name_runs_and_has_its_sizes() {
    let output = run("mine");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"ran other.elf\n", "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "an386 mine: flash 100, flash.text 100, ram 1000",
            "error: an386 mine: exit status 7"
        ]
    );
}

#[test]
fn an_image_without_a_listed_program_s_data_needs_another_name() {
    let output = run("digits");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: other.elf: no static in flash is named digits::FILE; \
         an image of another program than digits needs another name\n"
    );
}

#[test]
fn figures_are_compared_only_of_listed_programs() {
    let output = run("mine --budget --overwrite");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with("error: no program mine; there are conformance_models, "),
        "{told}"
    );
}
