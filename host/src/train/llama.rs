//! The first weights of a `bitnet` from a model of the architecture `llama`, whose matrices need not be ternary.
//!
//! Matrices, gains and the embedding are the model's own. `llama` rotates neighbouring rows of a head's queries and
//! keys, `bitnet` rows that are half a head apart, so these rows change their places. `bitnet` also has norms before
//! the output and down projections. A norm divides a token's values by the root of their mean square; its gains are
//! that root over a text, so that on average the norm changes nothing.

use tercet_core::gguf::{Reader, TensorInfo};
use tercet_core::model::{self, Config, Pattern};

use crate::convert::importance::of_inputs;
use crate::language::{LanguageFile, Parameters, Slot, View};
use crate::source::Source;
use crate::{Error, TensorFile};

/// Rows of ternary matrices are whole blocks of so many weights.
const ROW: u32 = 256;

/// Returns the parameters of the `bitnet` that [`Trainer::from_model`](super::Trainer::from_model) makes of a `llama`:
/// its own, with `channels` per layer of the feed-forward network if only so many are kept.
///
/// # Errors
/// Those of [`View::model`]. [`Error::Tensor`] for a tensor that a `bitnet` lacks: a head that is not the embedding,
/// biases, and factors of RoPE's frequencies. [`Error::Unsupported`] for a window of attention, for heads that have not
/// the embedding's width together, and for rows that are not whole blocks of 256.
pub fn converted(file: &LanguageFile, channels: Option<u32>) -> Result<Parameters, Error> {
    let mut view = View::of(file)?;
    let config = *view.model(file)?.config();
    check(file.path(), &file.reader()?)?;
    let refuse = |reason: String| Err(Error::unsupported(file.path(), reason));
    if config.pattern != Pattern::FULL {
        return refuse(format!(
            "llama.attention.sliding_window is {}, but a bitnet is trained without a window",
            config.pattern.window
        ));
    }
    let own = Parameters::of(&Config {
        architecture: model::Architecture::BitNet,
        ..config
    });
    let (width, heads) = (u64::from(own.embedding_length), own.query_length());
    if width != heads {
        return refuse(format!(
            "its {} heads of {} values have {heads} values in all, but a bitnet needs llama.embedding_length, {width}",
            own.head_count, own.head_length
        ));
    }
    let parameters = Parameters {
        feed_forward_length: channels.unwrap_or(own.feed_forward_length),
        ..own
    };
    let rows = [
        ("embedding_length", parameters.embedding_length),
        ("feed_forward_length", parameters.feed_forward_length),
    ];
    match rows.iter().find(|(_, len)| !len.is_multiple_of(ROW)) {
        Some((key, len)) => refuse(format!(
            "llama.{key} is {len}, but rows of ternary weights need a multiple of {ROW}"
        )),
        None => Ok(parameters),
    }
}

/// Refuses tensors that a `bitnet` lacks.
fn check(path: &std::path::Path, reader: &Reader<'_>) -> Result<(), Error> {
    let refuse = |tensor: &TensorInfo<'_>, reason| Err(Error::tensor(path, tensor.name, reason));
    let embedding = reader.tensors().find(|it| it.name == "token_embd.weight");
    for tensor in reader.tensors() {
        if tensor.name.ends_with(".bias") {
            return refuse(
                &tensor,
                "a bitnet has no biases, so only a llama without biases becomes one",
            );
        }
        if tensor.name == "rope_freqs.weight" {
            return refuse(
                &tensor,
                "a bitnet has no factors of frequencies, so only a llama without them becomes one",
            );
        }
        let is_same = |embedding: &TensorInfo<'_>| {
            (embedding.kind, embedding.data) == (tensor.kind, tensor.data)
        };
        if tensor.name == "output.weight" && !embedding.as_ref().is_some_and(is_same) {
            return refuse(
                &tensor,
                "it is not the same as token_embd.weight, but a bitnet has one matrix for both",
            );
        }
    }
    Ok(())
}

/// A `llama` whose weights become those of a `bitnet`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Llama<'a> {
    model: &'a TensorFile,
    inputs: &'a TensorFile,
}

impl<'a> Llama<'a> {
    /// Returns the model if it is a `llama`.
    ///
    /// # Errors
    /// [`Error::Tensor`] for a tensor that a `bitnet` lacks; [`Error::Options`] without recorded inputs.
    pub(super) fn of(
        model: &'a TensorFile,
        inputs: Option<&'a TensorFile>,
    ) -> Result<Option<Self>, Error> {
        let mut keys = model.metadata().iter();
        if !keys.any(|(key, value)| key == "general.architecture" && value == "llama") {
            return Ok(None);
        }
        let path = model.path();
        let reader = Reader::new(model.raw()).map_err(|error| Error::bad(path, "GGUF", error))?;
        check(path, &reader)?;
        let none = || {
            let path = path.display();
            Error::options(format!(
                "{path}: a llama becomes a bitnet with the recorded sizes of its inputs, which `tercet perplexity \
                 {path} TEXT --record FILE` writes"
            ))
        };
        let inputs = inputs.ok_or_else(none)?;
        Ok(Some(Self { model, inputs }))
    }

    /// Writes the mean square of each value that a norm receives which a `llama` lacks; false for another tensor.
    pub(super) fn squares(&self, slot: &Slot, values: &mut [f32]) -> Result<bool, Error> {
        let Some(matrix) = after(slot) else {
            return Ok(false);
        };
        let tensor = self.model.get(&matrix);
        let tensor =
            tensor.ok_or_else(|| Error::tensor(self.model.path(), &matrix, "it is missing"))?;
        let source = Source::new(self.model, tensor)?;
        let squares = of_inputs(self.inputs, &source)?;
        if squares.len() != values.len() {
            let (found, needed) = (squares.len(), values.len());
            let reason = format!("its rows have {found} values, not {needed}");
            return Err(Error::tensor(self.model.path(), &matrix, reason));
        }
        for (value, square) in values.iter_mut().zip(squares) {
            *value = square as f32;
        }
        Ok(true)
    }
}

/// Makes a tensor of a `llama` that of a `bitnet`: rows of queries and keys in their places, and gains from the mean
/// squares of [`Llama::squares`].
pub(super) fn adapt(slot: &Slot, parameters: &Parameters, values: &mut [f32]) {
    if after(slot).is_some() {
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / values.len() as f64;
        // The norm adds epsilon too before it divides.
        let gain = (mean + f64::from(parameters.rms_epsilon)).sqrt() as f32;
        values.fill(gain);
    } else if slot.is_rotated() {
        let width = parameters.embedding_length as usize;
        let head = parameters.head_length as usize;
        for rows in values.chunks_exact_mut(head * width) {
            let pairs = rows.to_vec();
            for (row, values) in pairs.chunks_exact(width).enumerate() {
                let place = row % 2 * (head / 2) + row / 2;
                rows[place * width..][..width].copy_from_slice(values);
            }
        }
    }
}

/// Returns the name of the matrix after a norm that a `llama` lacks.
fn after(slot: &Slot) -> Option<String> {
    let pairs = [
        ("attn_sub_norm", "attn_output"),
        ("ffn_sub_norm", "ffn_down"),
    ];
    let mut pairs = pairs.into_iter();
    let (norm, matrix) = pairs.find(|(norm, _)| slot.name.contains(norm))?;
    Some(slot.name.replace(norm, matrix))
}
