//! Quantized tensors.

use std::sync::OnceLock;

use numpy::ndarray::{ArrayView1, ArrayViewD};
use numpy::{
    IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tercet_host::quantized::{Measures, QuantError};
use tercet_host::{Quantizer, Weights};

use crate::arrays::{lent, values};
use crate::error::refused;

/// Codes, scales and zero points of a tensor. Its arrays are views that cannot be written.
#[pyclass(frozen, module = "tercet")]
pub(crate) struct Quantized {
    quantized: tercet_host::Quantized,
    shape: Vec<usize>,
    format: String,
    /// Packed when the first product needs it.
    weights: OnceLock<Weights>,
}

/// Quantizes an array of float32 or float16 to a format's codes; `rows` is true if each row, along the last axis, has its
/// own scale.
#[pyfunction]
pub(crate) fn quantize(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    format: &str,
    rows: bool,
) -> PyResult<Quantized> {
    let quantizer = match format {
        "int8" => Quantizer::int8(),
        "int8_affine" => Quantizer::int8_affine(),
        "int4" => Quantizer::int4(),
        "ternary" => Quantizer::ternary(),
        "bitnet" => Quantizer::bitnet(),
        other => {
            return Err(refused(format_args!(
                "no format is called `{other}`; there are int8, int8_affine, int4, ternary and bitnet"
            )));
        }
    };
    let made = |shape: &[usize]| match (rows, shape.last()) {
        (true, Some(&cols)) => quantizer.per_row(cols),
        _ => quantizer,
    };
    let (quantized, shape) = if let Ok(array) = array.extract::<PyReadonlyArrayDyn<'_, f32>>() {
        let (floats, shape) = (values(&array)?, array.shape().to_vec());
        (py.detach(|| made(&shape).quantize(floats)), shape)
    } else {
        let array = array
            .extract::<PyReadonlyArrayDyn<'_, half::f16>>()
            .map_err(|_| refused("the array is neither float32 nor float16"))?;
        let (floats, shape) = (values(&array)?, array.shape().to_vec());
        (py.detach(|| made(&shape).quantize(floats)), shape)
    };
    Ok(Quantized {
        quantized: quantized.map_err(|error| told(error, &shape))?,
        shape,
        format: format.to_owned(),
        weights: OnceLock::new(),
    })
}

/// Names the place of a value by its indices.
fn told(error: QuantError, shape: &[usize]) -> PyErr {
    let QuantError::NotFinite { index } = error else {
        return refused(error);
    };
    let mut rest = usize::try_from(index).unwrap_or(usize::MAX);
    let mut place: Vec<usize> = Vec::new();
    for &len in shape.iter().rev() {
        place.push(rest % len.max(1));
        rest /= len.max(1);
    }
    place.reverse();
    refused(format_args!("the value at {place:?} is not finite"))
}

#[pymethods]
impl Quantized {
    /// The codes, with the shape of the array: int8.
    #[getter]
    fn codes<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArrayDyn<i8>>> {
        let inner = this.get();
        let view = ArrayViewD::from_shape(&inner.shape[..], inner.quantized.codes());
        let view = view.map_err(refused)?;
        // SAFETY: the codes are the object's, which is frozen.
        Ok(unsafe { lent(&view, this.clone().into_any()) })
    }

    /// The scales: float32, one per row, or one.
    #[getter]
    fn scales<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyArray1<f32>> {
        let view = ArrayView1::from(this.get().quantized.scales());
        // SAFETY: the scales are the object's, which is frozen.
        unsafe { lent(&view, this.clone().into_any()) }
    }

    /// The zero points: int8, one per scale; all 0 for formats without.
    #[getter]
    fn zero_points<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyArray1<i8>> {
        let view = ArrayView1::from(this.get().quantized.zero_points());
        // SAFETY: the zero points are the object's, which is frozen.
        unsafe { lent(&view, this.clone().into_any()) }
    }

    /// The name of the format.
    #[getter]
    fn format(&self) -> &str {
        &self.format
    }

    /// The shape of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.shape)
    }

    /// Returns the restored values, float32 with the shape of the array.
    fn restore<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let values = py.detach(|| self.quantized.restore());
        values.into_pyarray(py).reshape(&self.shape[..])
    }

    /// Compares the restored values with the original array: a dict of figures.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        original: PyReadonlyArrayDyn<'py, f32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let original = values(&original)?;
        let found = py
            .detach(|| self.quantized.compare(original))
            .map_err(refused)?;
        figures(py, &found)
    }

    /// Multiplies the matrix by a vector, or by each row of a matrix of vectors, in exact integers.
    fn matvec<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArrayDyn<'py, f32>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let weights = match self.weights.get() {
            Some(weights) => weights,
            None => {
                let made = py.detach(|| Weights::from_quantized(&self.quantized));
                let made = made.map_err(refused)?;
                self.weights.get_or_init(|| made)
            }
        };
        let (shape, x) = (
            product(x.shape(), weights.rows(), weights.cols())?,
            values(&x)?,
        );
        let found = py.detach(|| weights.matmat(x)).map_err(refused)?;
        found.into_pyarray(py).reshape(&shape[..])
    }
}

/// Returns the figures of a comparison by name.
pub(crate) fn figures<'py>(py: Python<'py>, found: &Measures) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("mse", found.mse)?;
    dict.set_item("relative_error", found.relative_error)?;
    dict.set_item("sqnr_db", found.sqnr_db)?;
    dict.set_item("cosine", found.cosine)?;
    dict.set_item("max_error", found.max_error)?;
    Ok(dict)
}

/// Returns the shape of a matrix times vectors of this shape.
pub(crate) fn product(shape: &[usize], rows: usize, cols: usize) -> PyResult<Vec<usize>> {
    match shape.split_last() {
        Some((&last, others)) if last == cols => Ok([others, &[rows]].concat()),
        _ => Err(refused(format_args!(
            "x has the shape {shape:?}; its last axis needs {cols} values"
        ))),
    }
}
