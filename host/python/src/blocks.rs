//! Tensors in the blocks of GGUF files.

use half::slice::HalfBitsSliceExt;
use numpy::ndarray::ArrayView1;
use numpy::{
    IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tercet_core::block::{self, BlockError, Format};
use tercet_core::engine::{BlockEngine, QuantizeEngine};
use tercet_core::linear::{Layer, Layout, Matrix};
use tercet_core::number::Element;
use tercet_core::quant::{Comparison, Measures, Rule, ScaleRule};
use tercet_host::linear::matmat;
use tercet_host::parallel::Threads;

use crate::arrays::{Floats, floats, lent, values, with_floats};
use crate::error::refused;
use crate::quantize::{Reduced, no_rule, not_finite};

/// A tensor in blocks, with the bytes that a GGUF file holds.
#[pyclass(frozen, module = "tercet")]
pub(crate) struct Blocks {
    format: Format,
    shape: Vec<usize>,
    bytes: Vec<u8>,
    /// Measured when an array is encoded.
    error: Option<f64>,
}

/// Values that are decoded before they are compared: 1 MiB, whole blocks of every format.
const CHUNK: usize = 1 << 18;

/// Encodes rows along the last axis, ternary codes by a rule: ggml's if `None`.
#[pyfunction]
pub(crate) fn encode(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    format: &str,
    rule: Option<&str>,
    measure: bool,
) -> PyResult<Blocks> {
    let format = Format::from_name(format)
        .filter(|format| format.can_encode())
        .ok_or_else(|| refused(format_args!("no format of blocks is called `{format}`")))?;
    let floats = Floats::of(array, "x")?;
    let shape = floats.shape().to_vec();
    let count: usize = shape.iter().product();
    let cols = shape.last().copied().unwrap_or(0);
    if count == 0 || !cols.is_multiple_of(format.len()) {
        return Err(refused(format_args!(
            "an array of the shape {shape:?} has no whole blocks of {}; its last axis must be a multiple of it",
            format.len()
        )));
    }
    let rule = match rule {
        Some(_) if !format.is_ternary() => return Err(no_rule(format.name())),
        Some(name) => crate::quantize::rule(name)?,
        None => Rule::default(),
    };
    let scale = ScaleRule::Rule;
    let mut bytes = vec![0; count / format.len() * format.bytes()];
    let encoded = with_floats!(floats, values => {
        py.detach(|| Threads::default().encode_blocks(format, rule, scale, values, &mut bytes))
    });
    encoded.map_err(|error| match error {
        BlockError::NotFinite { index } => not_finite(index as u64, &shape),
        _ => refused(error),
    })?;
    let mut blocks = Blocks::of(format, shape, bytes);
    if measure {
        let compared = with_floats!(floats, values => py.detach(|| blocks.compared(values)));
        blocks.error = Some(compared?.relative_error);
    }
    Ok(blocks)
}

#[pymethods]
impl Blocks {
    /// Takes the bytes of a tensor in blocks, row after row.
    #[new]
    #[pyo3(signature = (format, shape, data, error = None))]
    fn new(
        format: &str,
        shape: Vec<usize>,
        data: PyReadonlyArrayDyn<'_, u8>,
        error: Option<f64>,
    ) -> PyResult<Self> {
        let format = Format::from_name(format)
            .ok_or_else(|| refused(format_args!("no format of blocks is called `{format}`")))?;
        let bytes = values(&data)?;
        let count = shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
        let whole = shape
            .last()
            .is_some_and(|cols| cols.is_multiple_of(format.len()));
        let expected = count.and_then(|count| format.encoded_len(count).ok());
        if !whole || expected != Some(bytes.len()) || bytes.is_empty() {
            return Err(refused(format_args!(
                "{} bytes are no blocks of {} values for an array of the shape {shape:?}",
                bytes.len(),
                format.len()
            )));
        }
        Ok(Self {
            error,
            ..Self::of(format, shape, bytes.to_vec())
        })
    }

    /// Pickles the parts that `Blocks` takes.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, inner) = (this.py(), this.get());
        let parts = (
            inner.format(),
            inner.shape(py)?,
            Self::data(this),
            inner.error,
        );
        Ok((this.get_type(), parts.into_pyobject(py)?))
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __deepcopy__(this: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
        this
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Blocks({:?}, {})", self.format(), self.shape(py)?))
    }

    /// The bytes of the blocks, row after row: uint8.
    #[getter]
    fn data<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyArray1<u8>> {
        let view = ArrayView1::from(&this.get().bytes[..]);
        // SAFETY: the bytes are the object's, which is frozen.
        unsafe { lent(&view, this.clone().into_any()) }
    }

    /// The name of the format.
    #[getter]
    fn format(&self) -> &str {
        self.format.name()
    }

    /// The shape of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The relative error, as measured when the array was encoded.
    #[getter]
    fn error(&self) -> PyResult<f64> {
        crate::quantize::measured(self.error)
    }

    /// The integer codes, with the shape of the array: int8. A value is its code times its scale.
    #[getter]
    fn codes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<i8>>> {
        self.product_only()?;
        let mut codes = vec![0; self.values()];
        py.detach(|| block::codes(self.format, &self.bytes, &mut codes))
            .map_err(refused)?;
        codes.into_pyarray(py).reshape(&self.shape[..])
    }

    /// The scales, one per run of values along the last axis: float32.
    #[getter]
    fn scales<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        self.product_only()?;
        let mut scales = vec![0.0; self.values() / self.format.part_len()];
        py.detach(|| block::scales(self.format, &self.bytes, &mut scales))
            .map_err(refused)?;
        let mut shape = self.shape.clone();
        if let Some(cols) = shape.last_mut() {
            *cols /= self.format.part_len();
        }
        scales.into_pyarray(py).reshape(&shape[..])
    }

    /// Returns the restored values, float32 with the shape of the array.
    fn restore<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let values = py.detach(|| self.restored()).map_err(refused)?;
        values.into_pyarray(py).reshape(&self.shape[..])
    }

    /// Compares the restored values with the original array: a dict of figures.
    fn compare<'py>(
        &self,
        py: Python<'py>,
        original: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let original = Floats::of(original, "original")?;
        let found = with_floats!(original, values => py.detach(|| self.compared(values)));
        crate::quantize::figures(py, &found?)
    }

    /// Writes the blocks to a GGUF file, as `write_gguf` does.
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
        let cols = self.shape.last().copied().unwrap_or(1);
        let rows = self.values() / cols.max(1);
        let shape = crate::quantize::product(x.shape(), rows, cols)?;
        let x = values(&x)?;
        let found = py.detach(|| {
            let layout = Layout::Block(self.format);
            let matrix = Matrix::new(layout, rows, cols, &self.bytes).map_err(refused)?;
            let mut out = vec![0.0; x.len() / cols * rows];
            matmat(&mut Threads::default(), &Layer::new(matrix), x, &mut out).map_err(refused)?;
            Ok::<_, PyErr>(out)
        });
        found?.into_pyarray(py).reshape(&shape[..])
    }
}

impl Blocks {
    /// Takes blocks, as many as the shape has.
    pub(crate) const fn of(format: Format, shape: Vec<usize>, bytes: Vec<u8>) -> Self {
        Self {
            format,
            shape,
            bytes,
            error: None,
        }
    }

    /// Refuses a format whose values are not codes times scales.
    fn product_only(&self) -> PyResult<()> {
        match self.format.min_offset() {
            None => Ok(()),
            Some(_) => Err(PyAttributeError::new_err(format!(
                "{} adds a minimum to its codes times scales; restore() returns the values",
                self.format.name()
            ))),
        }
    }

    fn values(&self) -> usize {
        self.bytes.len() / self.format.bytes() * self.format.len()
    }

    fn compared<T: Element>(&self, original: &[T]) -> PyResult<Measures> {
        if original.len() != self.values() {
            return Err(refused(format_args!(
                "{} values are compared with {}",
                original.len(),
                self.values()
            )));
        }
        let mut comparison = Comparison::new();
        let mut room = vec![0.0; CHUNK.min(original.len())];
        let bytes = self
            .bytes
            .chunks(CHUNK / self.format.len() * self.format.bytes());
        for (original, bytes) in original.chunks(CHUNK).zip(bytes) {
            let restored = &mut room[..original.len()];
            let mut threads = Threads::default();
            threads
                .decode_blocks(self.format, bytes, restored)
                .map_err(refused)?;
            let compared = threads.compare(&mut comparison, original, restored);
            compared.map_err(refused)?;
        }
        comparison
            .finish()
            .ok_or_else(|| refused("no values to compare"))
    }

    fn restored(&self) -> Result<Vec<f32>, BlockError> {
        let mut values = vec![0.0; self.values()];
        Threads::default().decode_blocks(self.format, &self.bytes, &mut values)?;
        Ok(values)
    }
}
