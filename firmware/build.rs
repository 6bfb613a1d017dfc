//! Puts the board's memory layout where the linker finds it and links with cortex-m-rt's script.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tercet_core::gguf::Reader;
use tercet_core::linear::network::LayerSize;
use tercet_core::model::tokenizer::{Encoding, Tokenizer, Vocabulary};
use tercet_core::model::{Layer, Model, Values};

/// Programs that log by defmt, whose linker script keeps the strings out of the image.
const LOGGING: [&str; 2] = ["costs", "motion"];

/// Programs with a language model, and what they have of a board: 128 KiB of RAM and 512 KiB of flash.
const LARGE: [&str; 1] = ["story"];

/// The language model, and what it continues.
const MODEL: &str = "../gpu/models/nano.gguf";
const PROMPT: &[u8] = b"ROMEO:";

/// What the others are linked with: they are built beside those, with defmt in their library, and are to be what they are without.
const SILENT: &str = "SECTIONS { /DISCARD/ : { *(.defmt .defmt.*) } }\n";

fn main() {
    println!("cargo:rerun-if-env-changed=TERCET_BOARD");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=boards");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-changed={MODEL}");
    fs::write(out.join("story.rs"), sizes(Path::new(MODEL))).expect("OUT_DIR can be written");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if !target.contains("-none-") || env::var_os("CARGO_FEATURE_QEMU").is_none() {
        // The library alone: on a desk, or in a package for a real board, which knows its own memory.
        return;
    }
    let board = env::var("TERCET_BOARD").unwrap_or_else(|_| {
        panic!("no board: `--config boards/BOARD.toml` names one, from the repository's root `cargo firmware`")
    });
    let path = format!("boards/{board}.x");
    let layout = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("no board {board}: {path}: {error}"));
    // As a chip that such a program is for has them; the micro:bit has no more.
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
    // Sections would be aligned to the pages of a loader that a board does not have.
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

/// What `src/story.rs` takes of the model's file: its shape, all matrices that are multiplied by, the prompt's tokens and those that end a text, as Rust.
fn sizes(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let refused = |error: &dyn std::fmt::Display| -> ! { panic!("{}: {error}", path.display()) };
    let reader = Reader::new(&bytes).unwrap_or_else(|error| refused(&error));
    let (layers, steps) = Model::lengths(&reader).unwrap_or_else(|error| refused(&error));
    let (mut layers, mut steps) = (vec![Layer::EMPTY; layers], vec![0; steps]);
    let model =
        Model::new(&reader, &mut layers, &mut steps).unwrap_or_else(|error| refused(&error));
    let mut matrices: Vec<LayerSize> = Vec::new();
    for weights in model
        .layers()
        .iter()
        .flat_map(Layer::weights)
        .chain([model.head()])
    {
        let Values::Blocks(layer) = &weights.values else {
            refused(&"a matrix is of floats, which takes more than a microcontroller has")
        };
        let weights = layer.weights();
        let size = LayerSize::new(weights.layout(), weights.rows(), weights.cols());
        if !matrices.contains(&size) {
            matrices.push(size);
        }
    }
    let vocabulary = Vocabulary::new(&reader, &bytes).unwrap_or_else(|error| refused(&error));
    let mut index = vec![0; vocabulary.index_len()];
    let tokenizer =
        Tokenizer::new(&vocabulary, &bytes, &mut index).unwrap_or_else(|error| refused(&error));
    let encoding = Encoding::default();
    let mut scratch = vec![0; encoding.scratch_len(PROMPT.len())];
    let tokens = tokenizer
        .encode(PROMPT, encoding, &mut scratch)
        .unwrap_or_else(|error| refused(&error));
    let prompt: Vec<u32> = tokens
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| refused(&error));
    let ends: Vec<u32> = (0..vocabulary.tokens())
        .filter(|&token| tokenizer.pieces().is_end(token))
        .collect();
    format!(
        "use tercet_core::{{linear::network::LayerSize, model::Config}};
pub(super) const CONFIG: Config = {{
    #[allow(unused_imports, reason = \"names that another file may have\")]
    use tercet_core::model::{{Architecture::*, CacheType::*, Gate::*, Pattern}};
    {:?}
}};
pub(super) const MATRICES: [LayerSize; {}] = {{
    #[allow(unused_imports, reason = \"names that another file may have\")]
    use tercet_core::{{block::Format::*, linear::Layout::*}};
    {matrices:?}
}};
pub(super) const LAYOUTS: u32 = {{
    let (mut layouts, mut at) = ([MATRICES[0].layout; {}], 0);
    while at < MATRICES.len() {{
        layouts[at] = MATRICES[at].layout;
        at += 1;
    }}
    tercet_core::linear::Layout::set(&layouts)
}};
pub(super) const PROMPT: [u32; {}] = {prompt:?};
pub(super) const ENDS: [u32; {}] = {ends:?};
",
        model.config(),
        matrices.len(),
        matrices.len(),
        prompt.len(),
        ends.len()
    )
}
