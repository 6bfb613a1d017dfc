//! The sizes of a file's network or model as Rust constants, and a model's memory, for a firmware's build script.
//!
//! Memory on a microcontroller is reserved when a program is compiled, so the sizes of a network or model must be
//! constants. A build script reads the file for the flash and writes these constants. Nothing is counted by hand, and
//! another file only needs another build. The crate is then a build-dependency with the feature `std`, and a
//! dependency without it.
//!
//! ```no_run
//! // build.rs
//! use std::{env, fs, path::Path};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     println!("cargo:rerun-if-changed=digits.gguf");
//!     let sizes = tercet_core::build_script::network(&fs::read("digits.gguf")?)?;
//!     fs::write(Path::new(&env::var("OUT_DIR")?).join("digits.rs"), sizes)?;
//!     Ok(())
//! }
//! ```
//!
//! ```ignore
//! // main.rs: SIZES, LAYOUTS, LAYERS, INPUTS and OUTPUTS
//! include!(concat!(env!("OUT_DIR"), "/digits.rs"));
//!
//! // Kernels load whole words from an aligned file, which is faster.
//! static FILE: &Aligned<[u8]> = &Aligned(*include_bytes!("../digits.gguf"));
//! let mut activations = [0; LayerSize::activations_len(&SIZES)];
//! let mut scratch = [0; LayerSize::scratch_len(&SIZES)];
//! let network = Network::<LAYERS>::new(&FILE.0)?;
//! // Code for other layouts than the file's is not linked.
//! let mut engine = Only::<LAYOUTS>;
//! ```

use std::boxed::Box;
use std::error::Error;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

use crate::gguf::Reader;
use crate::linear::network::{LayerSize, Network, NetworkError};
use crate::linear::{Layout, Matrix};
use crate::model::tokenizer::{Encoding, Tokenizer, Vocabulary};
use crate::model::{
    CacheType, Config, DecoderLayer, LayerPlaces, MatrixPlace, Model, Pattern, TensorPlace, Values,
    Weights, header_hash,
};

/// Source of a model's memory. `KEY`, `VALUE`, `KEYS` and `VALUES` are replaced.
const MEMORY: &str = include_str!("build_script/memory.in");

/// Largest number of layers of a network that this module reads.
const MAX_LAYERS: usize = 64;

/// Returns the constants of a network's file ([`crate::linear::network`]) as Rust source.
///
/// | constant | type | value |
/// |---|---|---|
/// | `SIZES` | `[LayerSize; LAYERS]` | layout, rows and columns of each layer |
/// | `LAYERS` | `usize` | number of layers, for [`Network`]'s parameter |
/// | `INPUTS`, `OUTPUTS` | `usize` | number of input values, and number of logits |
/// | `LAYOUTS` | `u32` | the set of its layouts, for [`Only`](crate::scalar::Only) |
///
/// The source imports `LayerSize`.
///
/// # Errors
/// [`NetworkError`] for a file that is not a network, or has more than 64 layers.
pub fn network(file: &[u8]) -> Result<String, NetworkError> {
    let network = Network::<MAX_LAYERS>::new(file)?;
    let sizes: Vec<LayerSize> = network
        .layers()
        .map(|layer| size(layer.weights()))
        .collect();
    let layers = sizes.len();
    Ok(format!(
        "use tercet_core::linear::network::LayerSize;
/// Layout, rows and columns of each layer.
pub const SIZES: [LayerSize; LAYERS] = {};
/// Number of layers.
pub const LAYERS: usize = {layers};
/// Number of values that go in.
pub const INPUTS: usize = {};
/// Number of logits that come out.
pub const OUTPUTS: usize = {};
{}",
        literal(&sizes),
        network.inputs(),
        network.outputs(),
        layouts("SIZES", layers),
    ))
}

/// Returns the constants and the memory of a language model's file ([`crate::model`]), and a prompt's tokens, as Rust
/// source.
///
/// `pattern` is which positions are attended to, or `None` for the file's own. With a window, memory is for the window
/// and not for the context, and a text may have any length.
///
/// | constant | type | value |
/// |---|---|---|
/// | `CONFIG` | [`Config`] | the model's shape, with that pattern |
/// | `MATRICES` | `[LayerSize; N]` | every layout and size of a matrix, for [`Needs::of_sizes`](crate::model::Needs::of_sizes) |
/// | `LAYOUTS`, `PARTS` | `u32` | the set of their layouts, and the model's [`ModelParts`](crate::model::ModelParts), for [`Only`](crate::scalar::Only) |
/// | `BUILT` | [`BuiltModel`](crate::model::BuiltModel) | where the file's tensors are, for [`Model::built`] |
/// | `VOCABULARY` | `[u32; Vocabulary::WORDS]` | for [`Vocabulary::from_words`] |
/// | `PROMPT` | `[u32; N]` | the prompt's tokens |
/// | `ENDS` | `[u32; N]` | the tokens that end a text |
/// | `NEEDS` | [`Needs`](crate::model::Needs) | memory of steps of one row, with the file's context and that pattern |
///
/// The source also has the struct `Memory` for a static: all buffers of a [`Generator`](crate::model::Generator) for
/// that context, or window. `Memory::new` is `const` and makes it of zeros. Its fields `texts` and `logits` are for
/// [`Pieces::new`](crate::model::tokenizer::Pieces::new) and [`Draws`](crate::model::Draws).
/// `work.split(config, places)` returns cache, sequence and the other [memory](crate::model::Memory):
///
/// ```ignore
/// static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::new());
///
/// let memory = MEMORY.take();
/// let model = Model::built(&FILE.0, &BUILT, &mut layers)?;
/// let mut places = [Place::default(); NEEDS.places];
/// let (sequence, work) = memory.work.split(model.config(), &mut places)?;
/// let draws = Draws { logits: &mut memory.logits, recent: &mut [], sampler: Sampler::GREEDY, ends: &ENDS };
/// let mut generator = Generator::new(Only::<LAYOUTS, PARTS>, &model, sequence, work, draws);
/// generator.begin(&PROMPT, 100);
/// ```
///
/// # Errors
/// Those of [`Reader::new`], [`Model::new`], [`Vocabulary::new`] and [`Tokenizer::encode`]; an error for a model with
/// a matrix of floats, for which a microcontroller has no space.
pub fn model(
    file: &[u8],
    prompt: &[u8],
    pattern: Option<Pattern>,
) -> Result<String, Box<dyn Error>> {
    let reader = Reader::new(file)?;
    let (layers, steps) = Model::lengths(&reader)?;
    let (mut layers, mut steps) = (vec![DecoderLayer::EMPTY; layers], vec![0; steps]);
    let model = Model::new(&reader, &mut layers, &mut steps)?;
    let mut matrices: Vec<LayerSize> = Vec::new();
    let weights = model.layers().iter().flat_map(DecoderLayer::weights);
    // The embedding is not multiplied, but decoded: its layout is among those of the engine, too.
    for weights in weights.chain([model.head(), model.embedding()]) {
        let Values::Blocks(layer) = &weights.values else {
            return Err(
                "a matrix is of floats, which takes more than a microcontroller has".into(),
            );
        };
        let size = size(layer.weights());
        if !matrices.contains(&size) {
            matrices.push(size);
        }
    }
    let built = built(file, &reader, &model);
    let vocabulary = Vocabulary::new(&reader, file)?;
    let mut index = vec![0; vocabulary.index_len()];
    let tokenizer = Tokenizer::new(&vocabulary, file, &mut index)?;
    let encoding = Encoding::default();
    let mut scratch = vec![0; encoding.scratch_len(prompt.len())];
    let tokens = tokenizer.encode(prompt, encoding, &mut scratch)?;
    let prompt = tokens.collect::<Result<Vec<u32>, _>>()?;
    let ends: Vec<u32> = (0..vocabulary.tokens())
        .filter(|&token| tokenizer.pieces().is_end(token))
        .collect();
    let config = Config {
        pattern: pattern.unwrap_or(model.config().pattern),
        ..*model.config()
    };
    Ok(format!(
        "use tercet_core::{{linear::network::LayerSize, model::Config}};
/// The model's shape.
pub const CONFIG: Config = {{
    #[allow(unused_imports, reason = \"names that another file may have\")]
    use tercet_core::model::{{Architecture::*, CacheType::*, Gate::*, Pattern}};
    {:?}
}};
/// Every layout and size of a matrix.
pub const MATRICES: [LayerSize; {}] = {};
{}{built}/// What it asks of an engine.
pub const PARTS: u32 = tercet_core::model::ModelParts::of(&CONFIG, CONFIG.cache, false).bits();
/// The vocabulary.
pub const VOCABULARY: [u32; tercet_core::model::tokenizer::Vocabulary::WORDS] = {:?};
/// The prompt's tokens.
pub const PROMPT: [u32; {}] = {prompt:?};
/// The tokens that end a text.
pub const ENDS: [u32; {}] = {ends:?};
{}",
        config,
        matrices.len(),
        literal(&matrices),
        layouts("MATRICES", matrices.len()),
        vocabulary.words(),
        prompt.len(),
        ends.len(),
        memory(config.cache),
    ))
}

/// Returns the source of `BUILT`, which says where a model's tensors are.
fn built(file: &[u8], reader: &Reader<'_>, model: &Model<'_, '_>) -> String {
    let place = |bytes: &[u8]| TensorPlace {
        // Each is a part of the file, or empty.
        at: match bytes {
            [] => 0,
            _ => bytes.as_ptr() as usize - file.as_ptr() as usize,
        },
        len: bytes.len(),
    };
    let matrix = |weights: &Weights<'_>| {
        let (size, bytes) = match &weights.values {
            Values::Blocks(layer) => (size(layer.weights()), layer.weights().bytes()),
            // No model has them here.
            _ => (LayerSize::new(Layout::Int8, 0, 0), &[][..]),
        };
        MatrixPlace {
            size,
            weights: place(bytes),
            bias: place(weights.bias),
            scale: weights.scale,
        }
    };
    let layers: Vec<LayerPlaces> = (model.layers().iter())
        .map(|layer| LayerPlaces {
            norms: [
                layer.attention_norm,
                layer.attention_sub_norm,
                layer.feed_forward_norm,
                layer.feed_forward_sub_norm,
            ]
            .map(place),
            matrices: layer.weights().map(matrix),
        })
        .collect();
    let header = file.len() - reader.data().len();
    let own_head = (model.head() != model.embedding()).then(|| matrix(model.head()));
    format!(
        "/// Where the file's tensors are.
pub const BUILT: tercet_core::model::BuiltModel<'static> = {{
    #[allow(unused_imports, reason = \"names that another file may have\")]
    use tercet_core::{{block::Format::*, linear::Layout::*, linear::network::LayerSize}};
    use tercet_core::model::{{BuiltModel, LayerPlaces, MatrixPlace, TensorPlace}};
    BuiltModel {{
        config: CONFIG,
        len: {},
        header: {header},
        hash: {:#x},
        layers: &{layers:?},
        embedding: {:?},
        norm: {:?},
        head: {own_head:?},
        steps: &{:?},
    }}
}};
",
        file.len(),
        header_hash(&file[..header]),
        matrix(model.embedding()),
        place(model.norm()),
        model.rope().steps,
    )
}

/// Returns the source of the memory of a model with this type of cache.
fn memory(cache: CacheType) -> String {
    let codes = |wide| match wide {
        false => ("i8", "Narrow"),
        true => ("i16", "Wide"),
    };
    let ((key, keys), (value, values)) = (codes(cache.wide_keys()), codes(cache.wide_values()));
    MEMORY
        .replace("Codes::KEYS", &format!("Codes::{keys}"))
        .replace("Codes::VALUES", &format!("Codes::{values}"))
        .replace("[KEY;", &format!("[{key};"))
        .replace("[VALUE;", &format!("[{value};"))
}

fn size(matrix: &Matrix<'_>) -> LayerSize {
    LayerSize::new(matrix.layout(), matrix.rows(), matrix.cols())
}

/// Returns the source of an array of sizes, with layouts and formats by the last part of their path.
fn literal(sizes: &[LayerSize]) -> String {
    format!(
        "{{
    #[allow(unused_imports, reason = \"names that another file may have\")]
    use tercet_core::{{block::Format::*, linear::Layout::*}};
    {sizes:?}
}}"
    )
}

/// Returns the source of `LAYOUTS`, the set of the layouts of the constant `sizes`.
fn layouts(sizes: &str, count: usize) -> String {
    format!(
        "/// The set of its layouts.
pub const LAYOUTS: u32 = {{
    let (mut layouts, mut at) = ([{sizes}[0].layout; {count}], 0);
    while at < {count} {{
        layouts[at] = {sizes}[at].layout;
        at += 1;
    }}
    tercet_core::linear::Layout::set(&layouts)
}};
"
    )
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    const TERNARY: &[u8] = include_bytes!("conformance/models/ternary.gguf");
    const LLAMA: &[u8] = include_bytes!("conformance/models/llama.gguf");

    #[test]
    fn files_that_no_program_can_be_built_for_are_refused() {
        let refused = |file: &[u8]| model(file, b"Hi", None).unwrap_err().to_string();
        let mut other = TERNARY.to_vec();
        let at = other.windows(6).position(|name| name == b"bitnet").unwrap();
        other[at] = b'g';
        for (file, expected) in [
            (&TERNARY[..TERNARY.len() - 1], "ends"),
            (&other, "general.architecture is missing or none of bitnet"),
            (LLAMA, "a matrix is of floats"),
        ] {
            let found = refused(file);
            assert!(found.contains(expected), "{found}");
        }
        assert!(model(TERNARY, b"Hi", None).is_ok());
    }
}
