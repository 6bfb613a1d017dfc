//! Errors as Python's exceptions, with the library's sentences.

use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use tercet_host::Error;

/// `OSError` for files that cannot be read, `MemoryError`, `RuntimeError` for a failed engine, `ValueError` for the
/// rest.
pub(crate) fn raised(error: Error) -> PyErr {
    let sentence = error.to_string();
    match error {
        Error::Io { .. } => PyOSError::new_err(sentence),
        Error::Memory { .. } => PyMemoryError::new_err(sentence),
        Error::Engine { .. } => PyRuntimeError::new_err(sentence),
        _ => PyValueError::new_err(sentence),
    }
}

/// `ValueError` with an error's sentence.
pub(crate) fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
