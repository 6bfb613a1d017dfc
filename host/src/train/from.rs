//! Initial weights from another model.

use tercet_core::conformance::Digest;
use tercet_core::quant::ternary::Rule;

use super::heads::{Heads, KeptHeads};
use super::llama::{Llama, adapt};
use super::options::TrainOptions;
use super::prune::{Channels, Pruned};
use crate::language::{Extras, Parameters, Role, Slot};
use crate::source::Source;
use crate::{Error, TensorFile, floats};

/// What a run made of the model that it began with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// A digest of the first weights.
    pub(super) digest: u64,
    pub(super) pruned: Option<Pruned>,
    pub(super) heads: Option<KeptHeads>,
    /// True if it was a `llama`.
    pub(super) converted: bool,
}

/// Calls `take` with the values of each of a model's tensors, in the file's order. Those of a ternary matrix are divided by the share of
/// nonzero weights: their mean magnitude is then their scale, so the run begins with the model as it is. The optimal
/// rule gives that scale without the division. A `llama` becomes a `bitnet`.
///
/// With a file of importances the model has more channels, and the most important ones are kept; or fewer heads are
/// kept. A `llama` may have as many as are kept.
///
/// # Errors
/// [`Error::Tensor`] for a tensor that is missing, of another shape or of an unsupported type; [`Error::Options`] for
/// heads to keep without importances; those of [`Channels::of`], [`Heads::of`] and [`Llama::of`].
pub(super) fn weights(
    model: &TensorFile,
    importance: Option<&TensorFile>,
    options: &TrainOptions,
    take: &mut dyn FnMut(&[f32]),
) -> Result<Origin, Error> {
    let llama = Llama::of(model, importance)?;
    let (mut parameters, mut channels) = (options.parameters, None);
    if let Some(importance) = importance {
        let kept = parameters.feed_forward_length;
        let own = of_file(model, &parameters)?;
        let is_pruned = llama.is_none() && options.heads.is_none();
        if is_pruned || own.feed_forward_length != kept {
            parameters = own;
            let both = (&parameters, kept as usize);
            channels = Some(Channels::of(model, importance, both)?);
        }
    }
    let heads = match (options.heads, importance) {
        (None, _) => None,
        (Some(kept), Some(importance)) => Some(Heads::of(model, importance, (&parameters, kept))?),
        (Some(_), None) => {
            return Err(Error::options(
                "heads are kept by their importance, which no file gives",
            ));
        }
    };
    let mut digest = Digest::new();
    for slot in parameters.tensors(Extras::default()) {
        let mut values = vec![0.0; slot.values()];
        let is_made = match &llama {
            Some(llama) => llama.squares(&slot, &mut values)?,
            None => false,
        };
        if !is_made {
            read(model, &slot, &mut values)?;
        }
        if let Some(heads) = &heads {
            heads.clear(&slot, &mut values);
        }
        if let Some(channels) = &channels {
            values = channels.of_tensor(&slot, values);
        }
        if llama.is_some() {
            adapt(&slot, &parameters, &mut values);
        }
        scaled(model, &slot, options.rule, &mut values);
        for value in &values {
            digest.bytes(&value.to_le_bytes());
        }
        take(&values);
    }
    Ok(Origin {
        digest: digest.value(),
        pruned: channels.map(|channels| channels.pruned),
        heads: heads.map(|heads| heads.kept),
        converted: llama.is_some(),
    })
}

/// Returns the parameters with the number of channels of the file.
fn of_file(model: &TensorFile, parameters: &Parameters) -> Result<Parameters, Error> {
    let name = "blk.0.ffn_gate.weight";
    let tensor = model
        .get(name)
        .ok_or_else(|| Error::tensor(model.path(), name, "it is missing"))?;
    let source = Source::new(model, tensor)?;
    let rows = source.shape().first().copied().unwrap_or(0);
    Ok(Parameters {
        feed_forward_length: u32::try_from(rows).unwrap_or(u32::MAX),
        ..*parameters
    })
}

fn read(model: &TensorFile, slot: &Slot, values: &mut [f32]) -> Result<(), Error> {
    let refuse = |reason: String| Error::tensor(model.path(), &slot.name, reason);
    let tensor = model
        .get(&slot.name)
        .ok_or_else(|| refuse("it is missing".into()))?;
    let source = Source::new(model, tensor)?;
    if source.shape() != slot.shape {
        let (found, expected) = (source.shape(), &slot.shape);
        return Err(refuse(format!("its shape is {found:?}, not {expected:?}")));
    }
    if !source.is_readable() {
        return Err(refuse(format!("{} is not read", source.type_name())));
    }
    source.read(0, values)
}

/// Multiplies a ternary matrix' values by its scale, and by what makes their mean magnitude that.
fn scaled(model: &TensorFile, slot: &Slot, rule: Rule, values: &mut [f32]) {
    if slot.role != Role::Matrix {
        return;
    }
    let scale = slot.name.replace(".weight", ".scale");
    let scale = model
        .get(&scale)
        .filter(|scale| scale.dtype.is_float() && scale.values() == 1);
    let scale = scale.map_or(1.0, |scale| floats::one(scale.dtype, scale.bytes));
    let factor = match rule {
        Rule::AbsMean => scale * spread(values),
        _ => scale,
    };
    for value in values {
        *value *= factor;
    }
}

/// Returns the number of weights per nonzero one, for a matrix in which all nonzero weights have the same magnitude;
/// otherwise 1.
fn spread(values: &[f32]) -> f32 {
    let mut others = values
        .iter()
        .map(|value| value.abs())
        .filter(|&value| value != 0.0);
    let Some(magnitude) = others.next() else {
        return 1.0;
    };
    let mut count = 1usize;
    for other in others {
        if other != magnitude {
            return 1.0;
        }
        count += 1;
    }
    values.len() as f32 / count as f32
}
