//! Quantized tensors.

use std::sync::OnceLock;

use half::slice::HalfBitsSliceExt;
use numpy::ndarray::{ArrayView1, ArrayViewD};
use numpy::{
    IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use tercet_core::block::Format;
use tercet_core::number::Element;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_host::quantized::{Groups, Measures, Method, QuantError};
use tercet_host::{Quantizer, Weights};

use crate::arrays::{Floats, floats, lent, values, with_floats};
use crate::error::refused;

/// Codes, scales and zero points of a tensor. Its arrays are views that cannot be written.
#[pyclass(frozen, module = "tercet")]
pub(crate) struct Quantized {
    quantized: tercet_host::Quantized,
    shape: Vec<usize>,
    format: String,
    /// Measured when an array is quantized.
    error: Option<f64>,
    /// Packed when the first product needs it.
    weights: OnceLock<Weights>,
}

/// What `__reduce__` returns: a class, and what it takes.
pub(crate) type Reduced<'py> = (Bound<'py, PyType>, Bound<'py, PyTuple>);

/// Quantizes an array to a format's codes, by a rule if they are ternary. `rows` is true if each row, along the last
/// axis, has its own scale.
#[pyfunction]
pub(crate) fn quantize(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    format: &str,
    rule: Option<&str>,
    rows: bool,
    measure: bool,
) -> PyResult<Quantized> {
    let quantizer = Quantizer::new(method(format, rule)?);
    let floats = Floats::of(array, "x")?;
    let shape = floats.shape().to_vec();
    let quantizer = match (rows, shape.last()) {
        (true, Some(&cols)) => quantizer.per_row(cols),
        _ => quantizer,
    };
    let made = with_floats!(floats, values => py.detach(|| made(quantizer, values, measure)));
    let (quantized, error) = made.map_err(|error| told(error, &shape))?;
    Ok(Quantized {
        quantized,
        shape,
        format: format.to_owned(),
        error,
        weights: OnceLock::new(),
    })
}

fn method(format: &str, rule: Option<&str>) -> PyResult<Method> {
    let ternary = |default| {
        let rule = rule.map_or(Ok(default), self::rule)?;
        Ok(Method::ternary(rule, ScaleRule::Rule))
    };
    let method = match format {
        "ternary" => return ternary(Rule::Optimal),
        "bitnet" => return ternary(Rule::AbsMean),
        "int8" => Method::Symmetric { limit: 127 },
        "int8_affine" => Method::Affine,
        "int4" => Method::Symmetric { limit: 7 },
        other => {
            let blocks: Vec<&str> = Format::ENCODED.iter().map(|it| it.name()).collect();
            return Err(refused(format_args!(
                "no format is called `{other}`; there are int8, int8_affine, int4, ternary, bitnet, {}",
                blocks.join(", ")
            )));
        }
    };
    match rule {
        None => Ok(method),
        Some(_) => Err(no_rule(format)),
    }
}

/// Returns the rule of ternary codes with this name.
pub(crate) fn rule(name: &str) -> PyResult<Rule> {
    Ok(match name {
        "absmax" => Rule::AbsMax,
        "absmean" => Rule::AbsMean,
        "twn" => Rule::Twn,
        "optimal" => Rule::Optimal,
        other => {
            return Err(refused(format_args!(
                "no rule is called `{other}`; there are absmax, absmean, twn and optimal"
            )));
        }
    })
}

pub(crate) fn no_rule(format: &str) -> PyErr {
    refused(format_args!(
        "{format} has no rule; ternary, bitnet, tq1_0, tq2_0 and q2_0 have"
    ))
}

/// Quantizes values, and measures the relative error if `measure` is true.
fn made<T: Element>(
    quantizer: Quantizer,
    floats: &[T],
    measure: bool,
) -> Result<(tercet_host::Quantized, Option<f64>), QuantError> {
    let quantized = quantizer.quantize(floats)?;
    let error = match measure {
        true => Some(quantized.compare(floats)?.relative_error),
        false => None,
    };
    Ok((quantized, error))
}

/// Returns a relative error, if it was measured.
pub(crate) fn measured(error: Option<f64>) -> PyResult<f64> {
    error.ok_or_else(|| {
        PyAttributeError::new_err(
            "the error was not measured when this was made; compare(x) measures it",
        )
    })
}

fn told(error: QuantError, shape: &[usize]) -> PyErr {
    match error {
        QuantError::NotFinite { index } => not_finite(index, shape),
        _ => refused(error),
    }
}

/// Names the place of a value that is not finite by its indices.
pub(crate) fn not_finite(index: u64, shape: &[usize]) -> PyErr {
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
    /// Takes codes with the shape of the array, and a scale and a zero point per row, or one of each.
    #[new]
    #[pyo3(signature = (format, codes, scales, zero_points, error = None))]
    fn new(
        format: &str,
        codes: PyReadonlyArrayDyn<'_, i8>,
        scales: PyReadonlyArrayDyn<'_, f32>,
        zero_points: PyReadonlyArrayDyn<'_, i8>,
        error: Option<f64>,
    ) -> PyResult<Self> {
        let shape = codes.shape().to_vec();
        let (codes, scales, zeros) = (values(&codes)?, values(&scales)?, values(&zero_points)?);
        let rows = codes.len() / shape.last().copied().unwrap_or(1).max(1);
        if scales.len() != 1 && scales.len() != rows {
            return Err(refused(format_args!(
                "{} scales are neither one nor one for each of {rows} rows",
                scales.len()
            )));
        }
        let groups = Groups {
            count: scales.len(),
            len: codes.len() / scales.len(),
        };
        let quantized = tercet_host::Quantized::from_parts(
            method(format, None)?,
            groups,
            codes.to_vec(),
            scales.to_vec(),
            zeros.to_vec(),
        );
        Ok(Self {
            quantized: quantized.map_err(refused)?,
            shape,
            format: format.to_owned(),
            error,
            weights: OnceLock::new(),
        })
    }

    /// Pickles the parts that `Quantized` takes.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let inner = this.get();
        let parts = (
            &inner.format,
            Self::codes(this)?,
            Self::scales(this),
            Self::zero_points(this),
            inner.error,
        );
        Ok((this.get_type(), parts.into_pyobject(this.py())?))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
        this
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Quantized({:?}, {})", self.format, self.shape(py)?))
    }

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
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The relative error, as measured when the array was quantized.
    #[getter]
    fn error(&self) -> PyResult<f64> {
        measured(self.error)
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
        original: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let original = Floats::of(original, "original")?;
        let found = with_floats!(original, values => py.detach(|| self.quantized.compare(values)));
        figures(py, &found.map_err(|error| told(error, original.shape()))?)
    }

    /// Writes codes, scales and zero points to a GGUF file, as `write_gguf` does.
    #[pyo3(signature = (path, name = "weight", *, force = false))]
    fn save(
        this: &Bound<'_, Self>,
        path: Bound<'_, PyAny>,
        name: &str,
        force: bool,
    ) -> PyResult<()> {
        crate::gguf::save(this, path, name, force)
    }

    /// Multiplies the matrix by a vector, or by each row of a matrix of vectors, in exact integers.
    fn matvec<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let x = floats(x, "x")?;
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
