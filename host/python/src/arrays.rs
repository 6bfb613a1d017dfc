//! NumPy arrays in and out.

use numpy::ndarray::{ArrayView, Dimension};
use numpy::{Element, PyArray, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::prelude::*;

use crate::error::refused;

/// Returns the values of an array in row-major order, which the package makes sure of.
pub(crate) fn values<'a, T: Element>(array: &'a PyReadonlyArrayDyn<'_, T>) -> PyResult<&'a [T]> {
    array
        .as_slice()
        .map_err(|_| refused("the array is not C-contiguous"))
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
