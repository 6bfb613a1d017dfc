//! Arrays in and out.

use half::f16;
use numpy::ndarray::{ArrayView, Dimension};
use numpy::{Element, PyArray, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::error::refused;

/// Returns the values of an array in row-major order, which the package makes sure of.
pub(crate) fn values<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<&'a [T]> {
    array
        .as_slice()
        .map_err(|_| refused("the array is not C-contiguous"))
}

/// An array in row-major order, of a type whose values are read where they are.
pub(crate) enum Floats<'py> {
    F32(PyReadonlyArrayDyn<'py, f32>),
    F16(PyReadonlyArrayDyn<'py, f16>),
    /// The bits of bfloat16 numbers, for which NumPy has no type.
    Bf16(PyReadonlyArrayDyn<'py, u16>),
}

impl<'py> Floats<'py> {
    /// Takes what the package's `numbers` takes for an array. `name` is the argument's.
    pub(crate) fn of(x: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        if let Some(array) = ready(x) {
            return Ok(Self::F32(array));
        }
        let array = converted(x, "numbers", name)?;
        if let Ok(array) = array.extract() {
            return Ok(Self::F32(array));
        }
        if let Ok(array) = array.extract() {
            return Ok(Self::F16(array));
        }
        Ok(Self::Bf16(array.extract()?))
    }

    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::F32(array) => array.shape(),
            Self::F16(array) => array.shape(),
            Self::Bf16(array) => array.shape(),
        }
    }
}

/// Evaluates an expression with the values of [`Floats`], of whichever type they are.
macro_rules! with_floats {
    ($floats:expr, $values:ident => $work:expr) => {
        match &$floats {
            $crate::arrays::Floats::F32(array) => {
                let $values = $crate::arrays::values(array)?;
                $work
            }
            $crate::arrays::Floats::F16(array) => {
                let $values = $crate::arrays::values(array)?;
                $work
            }
            $crate::arrays::Floats::Bf16(array) => {
                let $values: &[half::bf16] = $crate::arrays::values(array)?.reinterpret_cast();
                $work
            }
        }
    };
}

pub(crate) use with_floats;

/// Takes what the package's `floats` takes for an array, as float32.
pub(crate) fn floats<'py>(
    x: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, f32>> {
    match ready(x) {
        Some(array) => Ok(array),
        None => Ok(converted(x, "floats", name)?.extract()?),
    }
}

/// Returns an array that is float32 in row-major order already.
fn ready<'py>(x: &Bound<'py, PyAny>) -> Option<PyReadonlyArrayDyn<'py, f32>> {
    let array: PyReadonlyArrayDyn<'py, f32> = x.extract().ok()?;
    array.is_c_contiguous().then_some(array)
}

fn converted<'py>(
    x: &Bound<'py, PyAny>,
    function: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let arrays = x.py().import("tercet._arrays")?;
    arrays.call_method1(function, (x, name))
}

/// Returns a read-only array of memory that `owner` holds.
///
/// # Safety
/// The memory of `view` belongs to `owner`, which never changes or moves it.
pub(crate) unsafe fn lent<'py, T: Element, D: Dimension>(
    view: &ArrayView<'_, T, D>,
    owner: Bound<'py, PyAny>,
) -> Bound<'py, PyArray<T, D>> {
    // SAFETY: as the caller promises; the array holds its owner.
    let array = unsafe { PyArray::borrow_from_array(view, owner) };
    array.readwrite().make_nonwriteable();
    array
}
