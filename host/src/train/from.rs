//! First weights that another model has.

use tercet_core::quant::ternary::Rule;

use super::options::TrainOptions;
use crate::language::{Extras, Role, Slot};
use crate::source::Source;
use crate::{Error, Model, floats};

/// The values of a model's tensors, in the file's order. A ternary matrix' are divided by the share of weights that are not 0: their mean magnitude is
/// then the scale that they have, so that the run begins with the model as it is; the optimal rule has that scale without it.
///
/// # Errors
/// [`Error::Tensor`] for a tensor that is missing, of another shape or of a type that is not read.
pub(super) fn weights(model: &Model, options: &TrainOptions) -> Result<Vec<f32>, Error> {
    let mut weights = Vec::new();
    for slot in options.parameters.tensors(Extras::default()) {
        let first = weights.len();
        weights.resize(first + slot.values(), 0.0);
        read(model, &slot, options.rule, &mut weights[first..])?;
    }
    Ok(weights)
}

fn read(model: &Model, slot: &Slot, rule: Rule, values: &mut [f32]) -> Result<(), Error> {
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
    source.read(0, values)?;
    if slot.role != Role::Matrix {
        return Ok(());
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
    Ok(())
}

/// Weights for each that is not 0, of a matrix in which all others have one magnitude; else 1.
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
