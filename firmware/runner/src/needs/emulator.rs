//! Emulators, and the packages they come in.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use super::Lack;

/// Packages that have an emulator of that name.
pub fn how_to_get(program: &str) -> String {
    let package = if program.ends_with("arm") {
        "qemu-system-arm"
    } else {
        "qemu-system-misc"
    };
    format!("apt-get install {package}, brew install qemu, or https://www.qemu.org/download")
}

/// An emulator that is missing; nothing where it starts.
pub(super) fn lack(program: &str) -> Option<Lack> {
    let started = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // Its own exit status is not ours to judge.
    let error = started.err()?;
    let what = match error.kind() {
        ErrorKind::NotFound => format!("{program} in PATH"),
        _ => format!("{program}, which does not start: {error}"),
    };
    let how = how_to_get(program);
    Some(Lack { what, how })
}
