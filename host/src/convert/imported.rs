//! Converts language models from other file formats: with new metadata, and an action for each tensor.

use std::path::Path;
use std::time::Instant;

use tercet_core::block::bitnet_hf::WeightScale;

use super::check;
use super::codec::Codec;
use super::options::{QuantizeOptions, Target};
use super::plan::{Action, Conversion};
use super::report::Report;
use super::steps::tiled::TiledSteps;
use super::{ConversionSettings, run};
use crate::dtype::DType;
use crate::file::gguf::{About, Pair};
use crate::file::output::Output;
use crate::source::{Source, is_sidecar};
use crate::tensor_file::{Container, Tensor};
use crate::{Error, Progress, TensorFile};

/// The result of a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorResult {
    /// How its values are converted to bytes.
    pub(crate) action: Action,
    /// As in [`Source::paired`].
    pub(crate) head: Option<usize>,
}

/// The result of an imported model.
pub(crate) struct Import<'a> {
    /// The type that the file states as that of most matrices.
    pub(crate) dtype: DType,
    /// Returns the result of a tensor of the model.
    pub(crate) place: &'a dyn Fn(&Tensor<'_>) -> Result<TensorResult, Error>,
    /// The file's metadata.
    pub(crate) entries: &'a [Pair<'a>],
    /// Other files that were read, beside the model's.
    pub(crate) beside: &'a [&'a Path],
    /// Replaces an existing output.
    pub(crate) force: bool,
}

/// Writes a model of plain floats and packed codes as GGUF, on all threads; memory and atomicity are those of
/// [`super::quantize`].
///
/// # Errors
/// [`Error::Unsupported`] if `out` has the extension of another format; [`Error::Tensor`] for a value that is not
/// finite or too large for the type, with its index, and for rows that do not divide into the type's blocks;
/// [`Error::Options`] for a type that cannot be written; those of [`Output`].
pub(crate) fn imported(
    model: &TensorFile,
    import: &Import<'_>,
    out: &Path,
    progress: &dyn Progress,
) -> Result<Report, Error> {
    let started = Instant::now();
    let (_, file_type) = codec(import.dtype)?;
    if check::container(out)? != Container::Gguf {
        let reason = "a language model is written as GGUF; name the output *.gguf";
        return Err(Error::unsupported(out, reason));
    }
    let inputs = model.files().chain(import.beside.iter().copied());
    let output = Output::create(out, inputs, import.force)?;
    let mut plan = Vec::new();
    // Tensors beside packed tensors become part of their scales.
    for tensor in (model.tensors()).filter(|tensor| !is_sidecar(model, tensor.name)) {
        let TensorResult { action, head } = (import.place)(&tensor)?;
        let source = Source::new(model, tensor)?;
        plan.push(Conversion {
            source: head.map_or(source, |head| source.paired(head)),
            action,
            note: None,
        });
    }
    progress.start(model.tensor_bytes());
    let job = ConversionSettings {
        about: About {
            file_type: Some(file_type),
            entries: Some(import.entries),
        },
        weight_scale: WeightScale::default(),
        importance: None,
        started,
    };
    let container = Container::Gguf;
    run(
        &mut TiledSteps,
        model,
        container,
        output,
        &plan,
        &job,
        progress,
    )
}

impl TensorResult {
    /// Converts values to one type; all tensors except matrices to `f32`, without a copy, so that a value that is not
    /// finite is found.
    pub(crate) fn floats_or(dtype: DType, tensor: &Tensor<'_>) -> Result<Self, Error> {
        let codec = match tensor.shape {
            [_, _] => codec(dtype)?.0,
            _ => Codec::Floats(DType::F32),
        };
        let action = Action::Stream(codec);
        Ok(Self { action, head: None })
    }
}

/// Returns how values are converted to a type, and GGUF's number of a file that is mostly of it.
pub(crate) fn codec(dtype: DType) -> Result<(Codec, u32), Error> {
    let file_type = match dtype {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::Bf16 => 32,
        DType::Block(format) => {
            let options = QuantizeOptions::new(Target::Blocks(format));
            return Ok((Codec::blocks(format, &options), format.gguf_file_type()));
        }
        other => {
            let name = other.name();
            return Err(Error::options(format!(
                "weights cannot be written as {name}; use f32, f16, bf16 or a block format"
            )));
        }
    };
    Ok((Codec::Floats(dtype), file_type))
}
