//! Finds missing emulators.

use std::io::ErrorKind;

use super::Lack;
use crate::qemu::{how_to_get, try_out};

/// Returns an emulator as missing; `None` if it starts.
pub(super) fn lack(program: &str) -> Option<Lack> {
    let error = try_out(program).err()?;
    let what = match error.kind() {
        ErrorKind::NotFound => format!("{program} in PATH"),
        _ => format!("{program}, which does not start: {error}"),
    };
    let how = how_to_get(program);
    Some(Lack { what, how })
}
