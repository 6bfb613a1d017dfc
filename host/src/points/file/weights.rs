//! Reading one weight per point.

use super::{Points, ReadOptions, integers, spec::Spec, tensor};
use crate::{Error, TensorFile};

/// Reads the weights of `rows` points from a file as [`Points::open`] names them: one whole number from 0 to 2³² − 1
/// per point, in one dimension or one column. Integers of any type are read exactly; floats and text must be whole
/// numbers up to 2²⁴, beyond which `f32` has gaps.
///
/// # Errors
/// Those of [`Points::open`], and [`Error::Unsupported`] if there is not one weight per point, or a weight is negative,
/// too large or no whole number. Rows count from 0.
pub fn read_weights(spec: &str, rows: usize, options: &ReadOptions) -> Result<Vec<u32>, Error> {
    let found = Spec::parse(spec);
    let refuse = |reason: String| Error::unsupported(found.path, reason);
    let values: Vec<Weight> = match exact(&found)? {
        Some(values) => values.into_iter().map(Weight::Whole).collect(),
        None => {
            let points = Points::open(spec, options)?;
            points.to_f32().iter().map(|&x| Weight::Float(x)).collect()
        }
    };
    if values.len() != rows {
        let count = values.len();
        return Err(refuse(format!(
            "there are {count} weights for {rows} points; one weight per point is needed"
        )));
    }
    let mut weights = Vec::with_capacity(rows);
    for (row, value) in values.iter().enumerate() {
        weights.push(value.weight().ok_or_else(|| {
            refuse(format!(
                "weight {value} of row {row} (from 0) is not a whole number from 0 to {}",
                value.largest()
            ))
        })?);
    }
    Ok(weights)
}

enum Weight {
    Whole(i128),
    Float(f32),
}

impl Weight {
    /// Returns the largest weight of its kind.
    fn largest(&self) -> u32 {
        match self {
            Self::Whole(_) => u32::MAX,
            Self::Float(_) => 1 << 24,
        }
    }

    fn weight(&self) -> Option<u32> {
        match *self {
            Self::Whole(value) => value.try_into().ok(),
            Self::Float(value) => {
                // The cast saturates, so a value that it changed differs. Above 2²⁴ a float may stand for another
                // number.
                let weight = value as u32;
                (weight as f32 == value && weight <= 1 << 24).then_some(weight)
            }
        }
    }
}

impl std::fmt::Display for Weight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// Returns the values of a file with wide integers; `None` for other files.
fn exact(spec: &Spec<'_>) -> Result<Option<Vec<i128>>, Error> {
    if spec.is_text() {
        return Ok(None);
    }
    let model = TensorFile::open(spec.path)?;
    let tensor = tensor::find(&model, spec.tensor)?;
    if !integers::wide(tensor.dtype) {
        return Ok(None);
    }
    Ok(Some(integers::read(tensor).collect()))
}
