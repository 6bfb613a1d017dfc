//! Points from a tensor of a model file.

use std::path::Path;

use super::{Points, Values, integers};
use crate::dtype::DType;
use crate::source::{Source, is_sidecar};
use crate::tensor_file::Tensor;
use crate::{Error, TensorFile, names};

/// Number of names that an error lists.
const LISTED: usize = 8;

pub(super) fn read(path: &Path, tensor: Option<&str>) -> Result<Points, Error> {
    let model = TensorFile::open(path)?;
    let tensor = find(&model, tensor)?;
    let source = Source::new(&model, tensor)?;
    let shape = match source.shape() {
        shape if shape.is_empty() => vec![1],
        shape => shape,
    };
    if shape.contains(&0) {
        let reason = format!("its shape {shape:?} has no values");
        return Err(Error::tensor(path, tensor.name, reason));
    }
    let dims = shape.iter().skip(1).product();
    let values = values(&source, dims)?;
    let points = Points {
        path: path.to_path_buf(),
        name: tensor.name.to_owned(),
        shape,
        values,
        header: None,
        delimiter: None,
    };
    match points.first_not_finite() {
        Some((row, column)) => {
            let what = match tensor.dtype {
                DType::F64 => "is not finite as f32",
                _ => "is not finite",
            };
            let index = row * dims + column;
            Err(Points::bad_value(path, tensor.name, dims, index, what))
        }
        None => Ok(points),
    }
}

/// Returns the tensor of that name, or that of `only` if none is named.
pub(super) fn find<'a>(model: &'a TensorFile, tensor: Option<&str>) -> Result<Tensor<'a>, Error> {
    match tensor {
        Some(name) => model.get(name).ok_or_else(|| Error::NoSuchTensor {
            path: model.path().to_path_buf(),
            tensor: name.to_owned(),
            close: names::closest(name, model.tensors().map(|tensor| tensor.name)),
        }),
        None => only(model),
    }
}

/// Returns the tensor to read if none is named: the only one, or the only one of two dimensions.
fn only(model: &TensorFile) -> Result<Tensor<'_>, Error> {
    let all: Vec<Tensor<'_>> = model
        .tensors()
        .filter(|tensor| !is_sidecar(model, tensor.name))
        .collect();
    let tables: Vec<Tensor<'_>> = all
        .iter()
        .filter(|tensor| tensor.shape.len() == 2)
        .copied()
        .collect();
    match (all.as_slice(), tables.as_slice()) {
        ([one], _) | (_, [one]) => Ok(*one),
        ([], _) => Err(Error::unsupported(model.path(), "it holds no tensor")),
        _ => {
            let mut listed: Vec<String> = all
                .iter()
                .take(LISTED)
                .map(|tensor| format!("`{}`", tensor.name))
                .collect();
            if all.len() > LISTED {
                listed.push("…".to_owned());
            }
            let reason = format!(
                "it holds {} tensors; name one as FILE:TENSOR: {}",
                all.len(),
                listed.join(", ")
            );
            Err(Error::unsupported(model.path(), reason))
        }
    }
}

fn values(source: &Source<'_>, dims: usize) -> Result<Values, Error> {
    let tensor = source.tensor;
    if let Some(grid) = source.grid() {
        let codes = tensor.bytes.iter().map(|&byte| byte as i8).collect();
        return Ok(Values::I8 { codes, grid });
    }
    match tensor.dtype {
        DType::I8 if !source.is_quantized() => Ok(Values::int8(
            tensor.bytes.iter().map(|&byte| byte as i8).collect(),
        )),
        DType::U8 | DType::Bool if !source.is_quantized() => Ok(Values::U8(tensor.bytes.to_vec())),
        dtype if integers::wide(dtype) => {
            let mut values = vec![0.0; source.values()];
            for (index, (x, integer)) in values.iter_mut().zip(integers::read(tensor)).enumerate() {
                *x = integer as f32;
                if *x as i128 != integer {
                    let what = format!("is {integer}, which f32 cannot hold exactly");
                    let (path, name) = (source.path, tensor.name);
                    return Err(Points::bad_value(path, name, dims, index, &what));
                }
            }
            Ok(Values::F32(values))
        }
        _ => {
            let mut values = vec![0.0; source.values()];
            source.read_tiles(0, &mut values)?;
            Ok(Values::F32(values))
        }
    }
}
