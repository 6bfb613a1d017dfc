//! Pruning: a language model loses heads, feed-forward channels or single weights for good.
//!
//! **Structured** pruning removes whole heads and channels, so the model becomes smaller and faster everywhere. Those
//! that stay are the most important of their layer, as measured on a text: a channel's importance is the mean square of
//! what it contributes to the residual, its mean squared input times the squared length of its column in the matrix
//! after it. That of a head is the sum over its values. (It is the criterion of Wanda, summed over a column.)
//!
//! **Unstructured** pruning sets a share of every row of the layers' matrices to zero: the smallest magnitudes, or with
//! measured inputs the smallest products of magnitude and root mean squared input (Sun and others, *A simple and
//! effective pruning approach for large language models*, 2023).
//!
//! A `bitnet` has norms after attention and after the gate. Their mean squares change with what is removed, so their
//! gains are multiplied by the one factor that keeps the norm's outputs as they were on average. The heads of a `bitnet`
//! have as many values as its residual, by the rules of that architecture, so a removed head keeps its place: its
//! weights and gains are 0, and attention skips it.

mod choose;
mod cut;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;
use tercet_core::gguf::{Reader, Value};
use tercet_core::model::{Architecture, Config};

use super::file::{LanguageFile, View};
use crate::file::OutputTensor;
use crate::file::gguf::{self, Pair};
use crate::file::output::Output;
use crate::tensor_file::Container;
use crate::{Error, Progress, Result, TensorFile};
use choose::Kept;
use cut::Cut;

/// What to prune. At least one of the first three is needed.
#[derive(Clone, Debug, Default)]
pub struct PruneOptions {
    /// Number of key and value heads that every layer keeps, each with its query heads. The weights of the others are
    /// removed from a `llama`, and 0 in a `bitnet`.
    pub heads: Option<usize>,
    /// Number of feed-forward channels that every layer keeps.
    pub feed_forward: Option<usize>,
    /// Share of each row of the layers' matrices that is zero afterwards at least, rounded down to whole weights; above
    /// 0 and below 1.
    pub sparsity: Option<f64>,
    /// A file with the sums of squares of every matrix' inputs, as [`Inputs::write`](super::Inputs::write) and
    /// llama-imatrix write it. Needed for heads and channels.
    pub importance: Option<PathBuf>,
    /// Replaces an existing output.
    pub force: bool,
}

/// A pruned layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PrunedLayer {
    /// Indices of the key and value heads that it keeps.
    pub heads: Vec<usize>,
    /// Their share of the importance of all heads; 1 if all are kept.
    pub heads_importance: f64,
    /// Indices of the feed-forward channels that it keeps.
    pub channels: Vec<usize>,
    /// Their share of the importance of all channels; 1 if all are kept.
    pub channels_importance: f64,
    /// Weights of its matrices that are left.
    pub weights: u64,
    /// Number of these that were not zero and are zero now.
    pub zeroed: u64,
}

/// The report of [`prune`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PruneReport {
    /// Each layer.
    pub layers: Vec<PrunedLayer>,
    /// Query heads in the output, including those of a `bitnet` that are 0.
    pub head_count: usize,
    /// Key and value heads in the output, likewise.
    pub head_count_kv: usize,
    /// Feed-forward channels in the output.
    pub feed_forward_length: usize,
    /// Values of all tensors of the input.
    pub weights_before: u64,
    /// Values of all tensors of the output.
    pub weights_after: u64,
    /// Bytes of the input.
    pub bytes_before: u64,
    /// Bytes of the output.
    pub bytes_after: u64,
    /// Wall-clock seconds, including the flush to disk.
    pub seconds: f64,
}

impl PruneOptions {
    /// Checks the options against each other and against a model.
    fn check(&self, config: &Config) -> Result<()> {
        let refuse = |reason: String| Err(Error::options(reason));
        if self.heads.is_none() && self.feed_forward.is_none() && self.sparsity.is_none() {
            return refuse(
                "nothing to prune: give heads, feed-forward channels or a sparsity".into(),
            );
        }
        let structured = self.heads.is_some() || self.feed_forward.is_some();
        if structured && self.importance.is_none() {
            return refuse(
                "heads and channels are chosen by their importance: give a file with their inputs, \
                 which `tercet perplexity --record` writes"
                    .into(),
            );
        }
        if let Some(sparsity) = self.sparsity
            && !(sparsity > 0.0 && sparsity < 1.0)
        {
            return refuse(format!("a sparsity of {sparsity} is not between 0 and 1"));
        }
        let counts = [
            (self.heads, config.kv_heads, "key and value heads"),
            (self.feed_forward, config.hidden, "feed-forward channels"),
        ];
        for (kept, all, what) in counts {
            if let Some(kept) = kept
                && !(1..all).contains(&kept)
            {
                return refuse(format!(
                    "{kept} {what} cannot be kept of {all}; give 1 to {}",
                    all - 1
                ));
            }
        }
        Ok(())
    }
}

/// Writes a pruned copy of a language model to `out`, a GGUF file, which appears whole or not at all. All other
/// metadata and tensors are copied. The file depends only on the input and the options.
///
/// Rows are removed from matrices of any type. Columns are removed, and weights set to zero, only in floats and in
/// ternary blocks with one scale a matrix, where all other weights keep their values; so prune a model before it is
/// quantized. Memory: a few MiB beside the mapped files. O(weights).
///
/// # Errors
/// [`Error::Options`] for options that contradict each other or the model; [`Error::Tensor`] for a type that cannot be
/// pruned, channels that do not divide into its blocks, a value that is not finite, and for an importance that does not
/// fit; [`Error::NoSuchTensor`] for a missing importance; those of [`View::of`]; [`Error::OutputExists`],
/// [`Error::OutputIsInput`] and [`Error::Io`].
pub fn prune(
    path: &Path,
    options: &PruneOptions,
    out: &Path,
    progress: &dyn Progress,
) -> Result<PruneReport> {
    let started = Instant::now();
    if crate::convert::container(out)? != Container::Gguf {
        let reason = "a language model is a GGUF file; name the output *.gguf";
        return Err(Error::unsupported(out, reason));
    }
    let file = LanguageFile::open(path)?;
    let config = *View::of(&file)?.model(&file)?.config();
    options.check(&config)?;
    let model = TensorFile::open(path)?;
    let importance = options.importance.as_ref().map(TensorFile::open);
    let importance = importance.transpose()?;
    let inputs = options.importance.as_deref().into_iter().chain([path]);
    let output = Output::create(out, inputs, options.force)?;
    let kept = (0..config.layers)
        .map(|layer| Kept::choose(&model, importance.as_ref(), options, &config, layer))
        .collect::<Result<Vec<_>>>()?;
    let cuts = model
        .tensors()
        .map(|tensor| Cut::new(&model, tensor, importance.as_ref(), options, &config, &kept))
        .collect::<Result<Vec<_>>>()?;

    let heads = match config.architecture {
        Architecture::BitNet => config.kv_heads,
        Architecture::Llama => options.heads.unwrap_or(config.kv_heads),
    };
    let feed = options.feed_forward.unwrap_or(config.hidden);
    let group = config.heads / config.kv_heads;
    let reader = Reader::new(model.raw()).map_err(|error| Error::bad(path, "GGUF", error))?;
    let entries = entries(&reader, &config, (heads * group, heads, feed));
    let file_type = reader
        .get("general.file_type")
        .and_then(|number| u32::try_from(number.as_u64()?).ok());
    let parts: Vec<OutputTensor> = cuts.iter().map(Cut::part).collect();
    let specs = gguf::specs(&output, &parts)?;
    let mut writer = gguf::Writer::described(output, &entries, file_type, &specs)?;
    progress.start(model.tensor_bytes());
    let mut layers: Vec<PrunedLayer> = kept.into_iter().map(Kept::report).collect();
    for (number, cut) in cuts.iter().enumerate() {
        progress.tensor(cut.name());
        let zeroed = cut.write(&mut |bytes| writer.write(number, bytes), progress)?;
        if let Some(layer) = cut.layer().and_then(|layer| layers.get_mut(layer)) {
            layer.weights += cut.values();
            layer.zeroed += zeroed;
        }
    }
    let bytes_after = writer.finish()?;
    Ok(PruneReport {
        layers,
        head_count: heads * group,
        head_count_kv: heads,
        feed_forward_length: feed,
        weights_before: model.tensors().map(|tensor| tensor.values() as u64).sum(),
        weights_after: cuts.iter().map(Cut::values).sum(),
        bytes_before: model.raw().len() as u64,
        bytes_after,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Returns the input's metadata with the new sizes: query heads, key heads, feed-forward channels.
fn entries<'a>(
    reader: &Reader<'a>,
    config: &Config,
    (heads, kv_heads, feed): (usize, usize, usize),
) -> Vec<Pair<'a>> {
    let name = reader.get("general.architecture");
    let name = name.and_then(|name| name.as_str()).unwrap_or_default();
    // A head's length no longer follows from the number of heads.
    let sizes = [
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", config.head),
        ("attention.value_length", config.head),
        ("rope.dimension_count", config.head),
        ("feed_forward_length", feed),
    ]
    .map(|(key, size)| {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        (format!("{name}.{key}"), Value::U32(size))
    });
    let written = ["general.file_type", "general.quantization_version"];
    let kept = reader
        .metadata()
        .filter(|(key, _)| !written.contains(key) && sizes.iter().all(|(size, _)| size != key));
    let mut entries: Vec<Pair<'_>> = kept.map(|(key, value)| (key.to_owned(), value)).collect();
    entries.extend(sizes);
    entries
}
