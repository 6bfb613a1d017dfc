//! Models of language from files of another make than GGUF.

mod llama2c;
mod tokenizer;

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::parameters::Parameters;
use super::vocabulary::Lists;
use super::writer::Description;
use crate::convert::{self, Import, Report};
use crate::dtype::DType;
use crate::{Progress, Result};

/// How to import a model.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The type of matrices, the embedding and the head among them: `f32`, `f16`, `bf16` or blocks. Norms are `f32`.
    pub to: DType,
    /// The file with the vocabulary; `None` where it follows the weights in theirs.
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

/// Writes a checkpoint of llama2.c (version 0, without a mark of its own, or 1) as a GGUF file of a `llama` that llama.cpp runs.
///
/// The vocabulary is that of a `tokenizer.bin`: `options.tokenizer`, or what follows the weights. It becomes SentencePiece's, with
/// blanks as `▁` (U+2581), tokens 0 to 2 as the unknown one, the beginning and the end, and `<0xNN>` as bytes. A checkpoint does
/// not name RoPE's base and the norms' epsilon, which are llama2.c's: 10,000 and 10⁻⁵. The tables of sines that version 0 carries
/// are left out, as llama2.c leaves them unread.
///
/// Memory and atomicity are those of [`crate::quantize`]; the file is the same for any number of threads.
///
/// # Errors
/// [`Error::BadFile`](crate::Error::BadFile) for a checkpoint whose header and length contradict each other, and for a vocabulary
/// that is cut short or contradicts it; [`Error::Tensor`](crate::Error::Tensor) for a value that is not finite or too large for
/// the type, and for rows that do not divide into its blocks; [`Error::Unsupported`](crate::Error::Unsupported) for a version
/// that is not read, and for an output of another name than `….gguf`; [`Error::Options`](crate::Error::Options);
/// [`Error::OutputExists`](crate::Error::OutputExists) and [`Error::OutputIsInput`](crate::Error::OutputIsInput);
/// [`Error::Io`](crate::Error::Io).
pub fn import(
    path: &Path,
    options: &ImportOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<ImportReport> {
    let checkpoint = llama2c::read(path, options.tokenizer.as_deref())?;
    let parameters = checkpoint.parameters;
    let description = Description {
        parameters,
        vocabulary: checkpoint.vocabulary,
        extras: Vec::new(),
        dtype: options.to,
    };
    let lists = Lists::new(&description.vocabulary);
    let beside: Vec<&Path> = options.tokenizer.as_deref().into_iter().collect();
    let import = Import {
        dtype: options.to,
        entries: &description.entries(&lists),
        beside: &beside,
        force: options.force,
    };
    Ok(ImportReport {
        format: checkpoint.format,
        parameters,
        tied: checkpoint.tied,
        conversion: convert::imported(&checkpoint.model, &import, out, progress)?,
    })
}
