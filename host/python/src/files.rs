//! Files of tensors.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use tercet_host::convert::Target;
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, ReadOptions};
use tercet_host::{Error, QuantizeOptions, TensorFile};

use crate::error::{raised, refused};

/// Returns the name, the type and the shape of each tensor of a file.
#[pyfunction]
pub(crate) fn tensors(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Vec<(String, String, Vec<usize>)>> {
    let file = py.detach(|| TensorFile::open(&path)).map_err(raised)?;
    let of = file.tensors().map(|tensor| {
        let name = tensor.name.to_owned();
        (
            name,
            tensor.dtype.name().into_owned(),
            tensor.shape.to_vec(),
        )
    });
    Ok(of.collect())
}

/// Reads a tensor's values, restored to float32.
#[pyfunction]
pub(crate) fn read<'py>(
    py: Python<'py>,
    path: PathBuf,
    tensor: Option<&str>,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let name = match tensor {
        Some(tensor) => format!("{}:{tensor}", path.display()),
        None => path.display().to_string(),
    };
    let points = py
        .detach(|| Points::open(&name, &ReadOptions::default()))
        .map_err(raised)?;
    let values = points.to_f32().into_owned();
    values.into_pyarray(py).reshape(points.shape())
}

/// Quantizes a file, and returns the report as JSON.
#[pyfunction]
#[pyo3(signature = (input, output, *, to, bits, include, exclude, force))]
#[allow(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn quantize_file(
    py: Python<'_>,
    input: PathBuf,
    output: PathBuf,
    to: &str,
    bits: Option<f64>,
    include: Vec<String>,
    exclude: Vec<String>,
    force: bool,
) -> PyResult<String> {
    let target: Target = to.parse().map_err(refused)?;
    let options = QuantizeOptions {
        bits,
        include,
        exclude,
        force,
        ..QuantizeOptions::new(target)
    };
    let report = py.detach(|| -> Result<_, Error> {
        let model = TensorFile::open(&input)?;
        tercet_host::quantize(&mut Threads::default(), &model, &options, &output, &())
    });
    serde_json::to_string(&report.map_err(raised)?).map_err(refused)
}
