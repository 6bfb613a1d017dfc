//! Writes the board's memory layout to a folder that the linker searches.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let target = env::var("TARGET").expect("cargo sets TARGET");
    let vectors = env::var_os("CARGO_FEATURE_MVE").is_some();
    let (layout, name, script) = match target.as_str() {
        t if t.starts_with("thumbv8m") && vectors => ("memory/an547.x", "memory.x", "link.x"),
        t if t.starts_with("thumbv8m") => ("memory/an505.x", "memory.x", "link.x"),
        t if t.starts_with("thumb") => ("memory/mps2.x", "memory.x", "link.x"),
        t if t.starts_with("riscv32") => ("memory/virt.x", "virt.x", "virt.x"),
        _ => panic!("no board for {target}"),
    };
    println!("cargo:rerun-if-changed=memory");
    println!("cargo:rerun-if-changed=build.rs");
    println!(
        "cargo:rustc-check-cfg=cfg(tercet_board, values(\"an505\", \"an547\", \"mps2\", \"virt\"))"
    );
    let board = layout.trim_start_matches("memory/").trim_end_matches(".x");
    println!("cargo:rustc-cfg=tercet_board=\"{board}\"");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::copy(layout, out.join(name)).unwrap_or_else(|error| panic!("{layout}: {error}"));
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rustc-link-arg-bins=-T{script}");
    // Otherwise sections would be aligned to the pages of a loader that a board does not have.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    // Records which function calls which, for the sizes of code (benches/mcu/table/src/size.rs).
    println!("cargo:rustc-link-arg-bins=--emit-relocs");
}
