//! The `tercet` command where there is a device: the emulated one, or the machine's.

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod calibrate;
mod devices;
mod faults;
mod flows;
mod info;
mod network;
mod trace;

use crate::support as folder;
use crate::worked::Worked;
use folder::{Folder, Run, finish};
use support::emulator::lend;

/// Whether the device is the emulated one, whose switches work.
fn is_emulated() -> bool {
    std::env::var_os("TERCET_CUDA").is_none()
}

/// Runs the command beside the device, with its switches; `None` without one.
fn on_device(folder: &Folder, arguments: &[&str], switches: &str) -> Option<Run> {
    let mut command = folder.command(arguments);
    // What ends a launch is told in an error too.
    command.env("TERCET_EMULATOR", format!("tell=0,{switches}"));
    lend(&mut command).then(|| finish(&mut command))
}

/// As [`on_device`], a command whose metrics name the device if kernels were launched, and else not.
fn worked(folder: &Folder, arguments: &[&str], switches: &str) -> Option<Run> {
    let metrics = "worked.prom";
    let _ = std::fs::remove_file(folder.path(metrics));
    let arguments = [arguments, &["--metrics", metrics]].concat();
    let run = on_device(folder, &arguments, switches)?;
    let worked = Worked::read(folder, metrics, "");
    let named = worked.named.iter().any(|name| name == "cuda");
    assert_eq!(named, worked.launched > 0, "{arguments:?}: {worked:?}");
    Some(run)
}
