//! Puts the board's memory layout where the linker finds it and links with cortex-m-rt's script.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::{env, fs};

/// Programs that log by defmt, whose linker script keeps the strings out of the image.
const LOGGING: [&str; 2] = ["costs", "motion"];

/// What the others are linked with: they are built beside those, with defmt in their library, and are to be what they are without.
const SILENT: &str = "SECTIONS { /DISCARD/ : { *(.defmt .defmt.*) } }\n";

fn main() {
    println!("cargo:rerun-if-env-changed=TERCET_BOARD");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=boards");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if !target.contains("-none-") || env::var_os("CARGO_FEATURE_QEMU").is_none() {
        // The library alone: on a desk, or in a package for a real board, which knows its own memory.
        return;
    }
    let board = env::var("TERCET_BOARD").unwrap_or_else(|_| {
        panic!("no board: `--config boards/BOARD.toml` names one, from the repository's root `cargo firmware`")
    });
    let layout = format!("boards/{board}.x");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy(&layout, out.join("memory.x"))
        .unwrap_or_else(|error| panic!("no board {board}: {layout}: {error}"));
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    // Sections would be aligned to the pages of a loader that a board does not have.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    if env::var_os("CARGO_FEATURE_DEFMT").is_some() {
        fs::write(out.join("silent.x"), SILENT).expect("OUT_DIR can be written");
        println!("cargo:rerun-if-changed=src/bin");
        for entry in fs::read_dir("src/bin").expect("programs lie in src/bin") {
            let path = entry.expect("src/bin can be read").path();
            let program = path.file_stem().and_then(OsStr::to_str).expect("UTF-8");
            let script = if LOGGING.contains(&program) {
                "defmt.x"
            } else {
                "silent.x"
            };
            println!("cargo:rustc-link-arg-bin={program}=-T{script}");
        }
    }
    println!(
        "cargo:rustc-check-cfg=cfg(tercet_board, values(\"an385\", \"an386\", \"an500\", \"an505\", \"an547\", \"microbit\", \"virt\"))"
    );
    println!("cargo:rustc-cfg=tercet_board=\"{board}\"");
}
