//! Imports language models from file formats other than GGUF.

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
use crate::convert::{self, Action, Import, Report, TensorResult};
use crate::dtype::DType;
use crate::{Error, Progress, Result, TensorFile};

/// Options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The type of matrices, including the embedding and the head: `f32`, `f16`, `bf16` or blocks. Norms and biases are
    /// `f32`.
    ///
    /// Ternary matrices can be `tq1_0`, `tq2_0`, `q2_0`, `f16` or `f32`, which represent them exactly; the embedding
    /// and a head beside ternary blocks are Q8_0, with one scale per row. `None`: `f32` for a checkpoint of llama2.c,
    /// `f16` for a Hugging Face folder, and for its ternary matrices `tq2_0`, or `q2_0` if 256 does not divide a row.
    pub to: Option<DType>,
    /// The file of the vocabulary. `None`: the vocabulary after the weights in a checkpoint of llama2.c; in a folder
    /// `tokenizer.model`, or else `tokenizer.json`.
    pub tokenizer: Option<PathBuf>,
    /// Replaces an existing output.
    pub force: bool,
}

/// The report of an import.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The format of the input.
    pub format: String,
    /// The hyper-parameters.
    pub parameters: Parameters,
    /// True if the embedding is the head.
    pub tied: bool,
    /// The conversion of each tensor.
    #[serde(flatten)]
    pub conversion: Report,
}

/// A checkpoint and its vocabulary, from any format.
struct Checkpoint {
    /// Its tensors, under their names in GGUF.
    model: TensorFile,
    format: String,
    parameters: Parameters,
    extras: Extras,
    /// True if the matrices of the layers are, or become, −1, 0 and 1 with one scale each.
    is_ternary: bool,
    /// True if RoPE pairs are half a head apart, but the architecture has them side by side.
    has_halves: bool,
    vocabulary: Vocabulary,
    /// Other files that were read, beside the model's.
    beside: Vec<PathBuf>,
    /// Returns a tensor's name in the checkpoint, from its name in GGUF.
    theirs: fn(&str) -> String,
    /// The default type of matrices.
    default: DType,
}

/// Converts a model to a GGUF file that llama.cpp can run too. The input is a checkpoint of llama2.c (version 0, which
/// has no mark, or 1), or a folder saved by Hugging Face's `transformers`.
///
/// **llama2.c.** The vocabulary is a `tokenizer.bin`: `options.tokenizer`, or the data after the weights. It becomes a
/// SentencePiece vocabulary, with blanks as `▁` (U+2581), tokens 0 to 2 as unknown, beginning and end, and `<0xNN>` as
/// bytes. A checkpoint does not contain RoPE's base and the norms' epsilon; they are those of llama2.c: 10,000 and
/// 10⁻⁵. The sine tables of version 0 are left out; llama2.c does not read them either.
///
/// **Hugging Face.** `config.json` names a `LlamaForCausalLM`, a `MistralForCausalLM` without a window, or a
/// `BitNetForCausalLM`; unsupported settings are refused with their key. Weights are `model.safetensors` or the shards
/// of `model.safetensors.index.json`, in `f32`, `f16` or `bf16`; each must have its place and its shape, and none may
/// be left over. Rows of queries and keys of a llama are reordered from pairs half a head apart to neighbouring pairs,
/// as in llama.cpp's converter; the frequencies of `llama3` become a tensor that divides RoPE's. Matrices of a BitNet,
/// and of a model whose `quantization_config` says so, are −1, 0 and 1 with one f16 scale each. Packed matrices keep
/// their codes, with `weight_scale` as divisor or factor by `linear_class`; master weights are quantized by their mean
/// magnitude. With squared ReLU the architecture is `bitnet-b1.58`, which llama.cpp does not run.
///
/// The vocabulary is `tokenizer.model`, a SentencePiece model of kind BPE, or `tokenizer.json`: byte-level BPE with a
/// pattern that core's tokenizer knows, or BPE of characters with byte fallback, whose merges become scores.
/// `tokenizer_config.json` names special tokens and the template of conversations, `generation_config.json` the tokens
/// that end a text.
///
/// Memory and atomicity are those of [`crate::quantize`], plus the vocabulary; the file is the same for any number of
/// threads, and contains neither a date nor a path.
///
/// # Errors
/// [`Error::BadFile`](crate::Error::BadFile) for a checkpoint whose header and length contradict each other, for
/// invalid JSON, and for a vocabulary that is cut short or contradicts it;
/// [`Error::NoSuchTensor`](crate::Error::NoSuchTensor) and [`Error::Tensor`](crate::Error::Tensor) for a tensor that is
/// missing, unknown or of another shape, for a value that is not finite or too large for the type, and for rows that do
/// not divide into its blocks; [`Error::Unsupported`](crate::Error::Unsupported) for unsupported versions,
/// architectures and settings, and for an output not named `….gguf`; [`Error::Options`](crate::Error::Options);
/// [`Error::OutputExists`](crate::Error::OutputExists) and [`Error::OutputIsInput`](crate::Error::OutputIsInput);
/// [`Error::Io`](crate::Error::Io).
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
            "the ternary matrices of {} are not exact in {}; use tq1_0, tq2_0, q2_0, f16 or f32",
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
                    // transformers itself always quantizes these with the mean, whatever the values are.
                    action(Action::Ternary { dtype, kept: false })
                }
                Some(Role::Embedding | Role::Head)
                    if checkpoint.is_ternary && matches!(dtype, DType::Block(_)) =>
                {
                    action(Action::ByteRows)
                }
                _ => TensorResult::floats_or(dtype, tensor)?,
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

/// Converts an error to one with the tensor's name in the checkpoint.
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

const fn action(action: Action) -> TensorResult {
    TensorResult { action, head: None }
}

/// True if a type represents codes times an f16 scale exactly.
fn holds_ternary(dtype: DType) -> bool {
    match dtype {
        DType::F32 | DType::F16 => true,
        DType::Block(format) => format.is_ternary(),
        _ => false,
    }
}
