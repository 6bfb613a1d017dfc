//! Writes the board's memory layout to a folder that the linker searches, and links with cortex-m-rt's script.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tercet_core::build_script;
use tercet_core::model::Pattern;

/// Programs that log with defmt, whose linker script keeps the strings out of the image.
const LOGGING: [&str; 2] = ["costs", "motion"];

/// Programs with a language model. They use 128 KiB of RAM and 512 KiB of flash of a board.
const LARGE: [&str; 2] = ["motion_model", "story"];

/// The language model, and the prompt that it continues.
const MODEL: &str = "../gpu/models/nano.gguf";
const PROMPT: &[u8] = b"ROMEO:";

/// The language model that reads motion, and what stands before the first letter.
const MOTION_MODEL: &str = "data/motion-model.gguf";
const LINE: &[u8] = b"\n";
/// It attends to the last letters, of however many.
const LETTERS: Pattern = Pattern {
    window: 64,
    sinks: 0,
    stride: 0,
};

/// A model that a test runs with another cache.
const SMALL: &str = "../core/src/conformance/models/ternary.gguf";

/// The networks of `data`.
const NETWORKS: [&str; 2] = ["digits", "motion"];

/// Linker script of the other programs. They are built together with the logging ones, with defmt in their library,
/// but must equal a build without it.
const SILENT: &str = "SECTIONS { /DISCARD/ : { *(.defmt .defmt.*) } }\n";

fn main() {
    println!("cargo:rerun-if-env-changed=TERCET_BOARD");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=boards");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    constants(MODEL, &out.join("story.rs"), |file| {
        build_script::model(file, PROMPT, None)
    });
    constants(MOTION_MODEL, &out.join("motion_model.rs"), |file| {
        build_script::model(file, LINE, Some(LETTERS))
    });
    constants(SMALL, &out.join("wide.rs"), |file| {
        let file = with_wide_keys(file);
        fs::write(out.join("wide.gguf"), &file)?;
        build_script::model(&file, b"Hi", None)
    });
    for name in NETWORKS {
        let path = format!("data/{name}.gguf");
        constants(&path, &out.join(name).with_extension("rs"), |file| {
            Ok(build_script::network(file)?)
        });
    }
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if !target.contains("-none-") || env::var_os("CARGO_FEATURE_QEMU").is_none() {
        // Only the library: on a desktop, or in a package for a real board, which has its own memory layout.
        return;
    }
    let board = env::var("TERCET_BOARD").unwrap_or_else(|_| {
        panic!("no board: `--config boards/BOARD.toml` names one, from the repository's root `cargo firmware`")
    });
    let path = format!("boards/{board}.x");
    let layout = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("no board {board}: {path}: {error}"));
    // As on a chip that such a program is for; the micro:bit has no more.
    let large = match &*board {
        "microbit" => layout.clone(),
        _ => layout
            .replace("LENGTH = 4M", "LENGTH = 512K")
            .replace("LENGTH = 16K", "LENGTH = 128K"),
    };
    for (name, layout) in [("small", layout), ("large", large)] {
        let folder = out.join(name);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("memory.x"), layout))
            .expect("OUT_DIR can be written");
    }
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    // Otherwise sections would be aligned to the pages of a loader that a board does not have.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    let logs = env::var_os("CARGO_FEATURE_DEFMT").is_some();
    fs::write(out.join("silent.x"), SILENT).expect("OUT_DIR can be written");
    println!("cargo:rustc-link-search={}", out.display());
    println!("cargo:rerun-if-changed=src/bin");
    for entry in fs::read_dir("src/bin").expect("programs lie in src/bin") {
        let path = entry.expect("src/bin can be read").path();
        let program = path.file_stem().and_then(OsStr::to_str).expect("UTF-8");
        let memory = match LARGE.contains(&program) {
            true => "large",
            false => "small",
        };
        let memory = out.join(memory);
        println!("cargo:rustc-link-arg-bin={program}=-L{}", memory.display());
        if logs {
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

/// Returns a model's file with two more entries: one for keys of 16 bits, and one that makes both 64 bytes long, so
/// that tensors stay aligned.
fn with_wide_keys(file: &[u8]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    let (u8_type, text_type) = (0u32.to_le_bytes(), 8u32.to_le_bytes());
    let cache = [&text("tercet.cache")[..], &text_type, &text("int16-8")].concat();
    let filler = [&text("twelve.bytes")[..], &u8_type, &[0]].concat();
    // Magic, version, number of tensors, number of entries.
    let (head, rest) = file.split_at(24);
    let (head, entries) = head.split_at(16);
    let entries = u64::from_le_bytes(entries.try_into().expect("eight bytes")) + 2;
    [head, &entries.to_le_bytes(), &cache, &filler, rest].concat()
}

/// Writes the constants that `source` computes from a file's bytes.
fn constants(
    path: &str,
    to: &Path,
    source: impl Fn(&[u8]) -> Result<String, Box<dyn std::error::Error>>,
) {
    println!("cargo:rerun-if-changed={path}");
    let file = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let source = source(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    fs::write(to, source).expect("OUT_DIR can be written");
}
