//! Models of language from files of another make than GGUF.

mod hugging_face;
mod llama2c;
mod tokenizer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::parameters::Parameters;
use super::tensors::{Extras, Role, Slot};
use super::vocabulary::{Lists, Vocabulary};
use super::writer::Description;
use crate::convert::{self, Action, Import, Place, Report};
use crate::dtype::DType;
use crate::{Error, Model, Progress, Result};

/// How to import a model.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The type of matrices, the embedding and the head among them: `f32`, `f16`, `bf16` or blocks. Norms and biases are `f32`.
    ///
    /// Ternary matrices take `tq1_0`, `tq2_0`, `q2_0`, `f16` or `f32`, which hold them exactly; the embedding and a head beside
    /// ternary blocks are Q8_0, with one scale a row. `None`: `f32` for a checkpoint of llama2.c, `f16` for a folder of Hugging
    /// Face's, and for ternary matrices there `tq2_0`, or `q2_0` where 256 does not divide a row.
    pub to: Option<DType>,
    /// The file with the vocabulary. `None`: what follows the weights in a checkpoint of llama2.c; in a folder `tokenizer.model`,
    /// or else `tokenizer.json`.
    pub tokenizer: Option<PathBuf>,
    /// Replace an output that exists.
    pub force: bool,
}

/// What was imported.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The format of the input.
    pub format: String,
    /// The hyper-parameters.
    pub parameters: Parameters,
    /// Whether the embedding is the head.
    pub tied: bool,
    /// What became of each tensor.
    #[serde(flatten)]
    pub conversion: Report,
}

/// A checkpoint and its vocabulary, whatever its make.
struct Checkpoint {
    /// Its tensors under the names that GGUF gives them.
    model: Model,
    format: String,
    parameters: Parameters,
    extras: Extras,
    /// Whether the matrices of the layers are, or become, −1, 0 and 1 with one scale each.
    is_ternary: bool,
    /// Whether RoPE's pairs lie half a head apart where the architecture has them side by side.
    has_halves: bool,
    vocabulary: Vocabulary,
    /// Files besides the model's that were read.
    beside: Vec<PathBuf>,
    /// A tensor's name in it, by the one in GGUF.
    theirs: fn(&str) -> String,
    /// The type of matrices, unless one is asked for.
    default: DType,
}

/// Writes a model of another make as a GGUF file that llama.cpp runs too: a checkpoint of llama2.c (version 0, without a mark
/// of its own, or 1), or a folder as Hugging Face's `transformers` saves one.
///
/// **llama2.c.** The vocabulary is that of a `tokenizer.bin`: `options.tokenizer`, or what follows the weights. It becomes
/// SentencePiece's, with blanks as `▁` (U+2581), tokens 0 to 2 as the unknown one, the beginning and the end, and `<0xNN>` as
/// bytes. A checkpoint does not name RoPE's base and the norms' epsilon, which are llama2.c's: 10,000 and 10⁻⁵. The tables of sines
/// that version 0 carries are left out, as llama2.c leaves them unread.
///
/// **Hugging Face.** `config.json` names a `LlamaForCausalLM`, a `MistralForCausalLM` without a window, or a `BitNetForCausalLM`;
/// what it asks for that would not be computed is refused by its key. Weights are `model.safetensors` or the shards of
/// `model.safetensors.index.json`, in `f32`, `f16` or `bf16`; each has its place and its shape, and none is left over. Rows of
/// queries and keys of a llama go from pairs half a head apart to pairs of neighbours, as llama.cpp's converter has them; the
/// frequencies of `llama3` become a tensor that divides RoPE's. Matrices of a BitNet, and of what `quantization_config` names so,
/// are −1, 0 and 1 with one f16 scale each: the codes of packed ones as they are, with `weight_scale` as divisor or factor by
/// `linear_class`; those of master weights by their mean magnitude. With the square of ReLU the architecture is
/// `bitnet-b1.58`, which llama.cpp does not run.
///
/// The vocabulary is `tokenizer.model`, a SentencePiece model of kind BPE, or `tokenizer.json`: byte-level BPE with a pattern that
/// core's tokenizer knows, or one of characters with byte fallback, whose merges become scores. `tokenizer_config.json` names
/// special tokens and the template of conversations, `generation_config.json` the tokens that end a text.
///
/// Memory and atomicity are those of [`crate::quantize`], beside the vocabulary; the file is the same for any number of threads,
/// and holds neither a date nor a path.
///
/// # Errors
/// [`Error::BadFile`](crate::Error::BadFile) for a checkpoint whose header and length contradict each other, for JSON that is none,
/// and for a vocabulary that is cut short or contradicts it; [`Error::NoSuchTensor`](crate::Error::NoSuchTensor) and
/// [`Error::Tensor`](crate::Error::Tensor) for one that lacks, has no place or another shape, for a value that is not finite or too
/// large for the type, and for rows that do not divide into its blocks; [`Error::Unsupported`](crate::Error::Unsupported) for
/// versions, architectures and settings that are not read, and for an output of another name than `….gguf`;
/// [`Error::Options`](crate::Error::Options); [`Error::OutputExists`](crate::Error::OutputExists) and
/// [`Error::OutputIsInput`](crate::Error::OutputIsInput); [`Error::Io`](crate::Error::Io).
pub fn import(
    path: &Path,
    options: &ImportOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<ImportReport> {
    let tokenizer = options.tokenizer.as_deref();
    let checkpoint = match path.is_dir() {
        true => hugging_face::read(path, tokenizer)?,
        false => llama2c::read(path, tokenizer)?,
    };
    let parameters = checkpoint.parameters;
    let dtype = options.to.unwrap_or(checkpoint.default);
    if checkpoint.is_ternary && !holds_ternary(dtype) {
        return Err(Error::options(format!(
            "the ternary matrices of {} are not exact in {}; tq1_0, tq2_0, q2_0, f16 and f32 hold them",
            path.display(),
            dtype.name()
        )));
    }
    let description = Description {
        parameters,
        vocabulary: checkpoint.vocabulary,
        extras: Vec::new(),
        dtype,
    };
    let lists = Lists::new(&description.vocabulary);
    let slots = parameters.tensors(checkpoint.extras);
    let slots: HashMap<&str, &Slot> = slots
        .iter()
        .map(|slot| (slot.name.as_str(), slot))
        .collect();
    let head_length = parameters.head_length as usize;
    let import = Import {
        dtype,
        place: &|tensor| {
            let slot = slots.get(tensor.name);
            let mut place = match slot.map(|slot| slot.role) {
                Some(Role::Matrix) if checkpoint.is_ternary => {
                    // What transformers quantizes itself, it does by the mean, whatever the values are.
                    action(Action::Ternary { dtype, kept: false })
                }
                Some(Role::Embedding | Role::Head)
                    if checkpoint.is_ternary && matches!(dtype, DType::Block(_)) =>
                {
                    action(Action::ByteRows)
                }
                _ => Place::floats_or(dtype, tensor)?,
            };
            let paired = checkpoint.has_halves && slot.is_some_and(|slot| slot.is_rotated());
            place.head = paired.then_some(head_length);
            Ok(place)
        },
        entries: &description.entries(&lists),
        beside: &(checkpoint.beside.iter().map(PathBuf::as_path)).collect::<Vec<_>>(),
        force: options.force,
    };
    let conversion = convert::imported(&checkpoint.model, &import, out, progress);
    Ok(ImportReport {
        format: checkpoint.format,
        parameters,
        tied: !checkpoint.extras.head,
        conversion: conversion.map_err(|error| named(error, checkpoint.theirs))?,
    })
}

/// An error with the tensor's name that who sees it has in the checkpoint.
fn named(error: Error, theirs: fn(&str) -> String) -> Error {
    match error {
        Error::Tensor {
            path,
            tensor,
            reason,
        } => Error::Tensor {
            path,
            tensor: theirs(&tensor),
            reason,
        },
        other => other,
    }
}

const fn action(action: Action) -> Place {
    Place { action, head: None }
}

/// Whether a type holds codes times an f16 scale exactly.
fn holds_ternary(dtype: DType) -> bool {
    match dtype {
        DType::F32 | DType::F16 => true,
        DType::Block(format) => format.is_ternary(),
        _ => false,
    }
}
