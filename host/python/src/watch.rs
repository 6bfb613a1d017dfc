//! Work that Python watches: callbacks, and Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// A callback of Python's, or none. The first exception that it raises ends the work.
pub(crate) struct Watch {
    callback: Option<Py<PyAny>>,
    failed: Mutex<Option<PyErr>>,
}

/// What is thrown through the library, whose callbacks return nothing.
struct Ended;

impl Watch {
    pub(crate) const fn new(callback: Option<Py<PyAny>>) -> Self {
        Self {
            callback,
            failed: Mutex::new(None),
        }
    }

    /// Runs `work` without the interpreter. An exception of [`Watch::tell`] ends it, and nothing of it is left: the
    /// library's guards remove files that are not complete.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
        match done {
            Ok(done) => done,
            Err(panic) => {
                let failed = self.failed.lock();
                match failed.unwrap_or_else(PoisonError::into_inner).take() {
                    Some(error) => Err(error),
                    None => resume_unwind(panic),
                }
            }
        }
    }

    /// Calls the callback and lets Ctrl-C end the work; returns what the callback returned.
    fn call(&self, args: impl for<'py> PyCallArgs<'py>) -> PyResult<bool> {
        Python::attach(|py| {
            py.check_signals()?;
            match &self.callback {
                Some(callback) => {
                    let said = callback.bind(py).call1(args)?;
                    Ok(said.is_none() || said.is_truthy()?)
                }
                None => Ok(true),
            }
        })
    }

    /// Calls the callback; ends the work if it raises an exception, or by Ctrl-C. Returns false if it returned `False`.
    pub(crate) fn tell(&self, args: impl for<'py> PyCallArgs<'py>) -> bool {
        self.call(args).unwrap_or_else(|error| {
            let failed = self.failed.lock();
            *failed.unwrap_or_else(PoisonError::into_inner) = Some(error);
            // Prints nothing, unlike a panic.
            resume_unwind(Box::new(Ended))
        })
    }
}
