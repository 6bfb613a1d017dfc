//! Initial weights from another model.

use tercet_core::quant::ternary::Rule;

use super::options::TrainOptions;
use crate::language::{Extras, Role, Slot};
use crate::source::Source;
use crate::{Error, TensorFile, floats};

/// Returns the values of a model's tensors, in the file's order. Those of a ternary matrix are divided by the share of
/// nonzero weights: their mean magnitude is then their scale, so the run begins with the model as it is. The optimal
/// rule gives that scale without the division.
///
/// # Errors
/// [`Error::Tensor`] for a tensor that is missing, of another shape or of an unsupported type.
pub(super) fn weights(model: &TensorFile, options: &TrainOptions) -> Result<Vec<f32>, Error> {
    let mut weights = Vec::new();
    for slot in options.parameters.tensors(Extras::default()) {
        let first = weights.len();
        weights.resize(first + slot.values(), 0.0);
        read(model, &slot, options.rule, &mut weights[first..])?;
    }
    Ok(weights)
}

fn read(model: &TensorFile, slot: &Slot, rule: Rule, values: &mut [f32]) -> Result<(), Error> {
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
