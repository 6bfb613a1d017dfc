//! The tensors of a layer.

use super::LayerOptions;
use crate::source::Source;
use crate::{Error, TensorFile, names};

/// A layer's tensors.
pub(super) struct Matrix<'a> {
    pub(super) weight: Source<'a>,
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) bias: Option<Source<'a>>,
}

impl Matrix<'_> {
    pub(super) fn refuse(&self, reason: impl ToString) -> Error {
        Error::tensor(self.weight.path, self.weight.tensor.name, reason)
    }
}

pub(super) fn matrix<'a>(model: &'a TensorFile, layer: &LayerOptions) -> Result<Matrix<'a>, Error> {
    let name = format!("{}.weight", layer.name);
    let tensor = model.get(&name).ok_or_else(|| Error::NoSuchTensor {
        path: model.path().to_path_buf(),
        close: names::closest(&name, model.tensors().map(|tensor| tensor.name)),
        tensor: name,
    })?;
    let weight = Source::new(model, tensor)?;
    let refuse =
        |source: &Source<'_>, reason: &str| Error::tensor(model.path(), source.tensor.name, reason);
    if !weight.is_readable() {
        return Err(refuse(&weight, "its type is not supported"));
    }
    let &[rows, cols] = weight.shape().as_slice() else {
        return Err(refuse(&weight, "it is not a matrix"));
    };
    let bias = match model.get(&format!("{}.bias", layer.name)) {
        None => None,
        Some(tensor) => {
            let bias = Source::new(model, tensor)?;
            if !bias.is_readable() || bias.values() != rows {
                return Err(refuse(
                    &bias,
                    "it is not one number for each row of the weights",
                ));
            }
            Some(bias)
        }
    };
    Ok(Matrix {
        weight,
        rows,
        cols,
        bias,
    })
}

/// Returns all values of a tensor, which must be finite.
pub(super) fn floats(source: &Source<'_>) -> Result<Vec<f32>, Error> {
    let mut values = vec![0.0; source.values()];
    source.read(0, &mut values)?;
    match values.iter().position(|x| !x.is_finite()) {
        Some(index) => Err(Error::not_finite(source.path, source.tensor.name, index)),
        None => Ok(values),
    }
}
