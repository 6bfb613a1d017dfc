//! The native part of the Python package `tercet`: the owned forms of `tercet_host` over NumPy arrays.
//!
//! Work runs without the interpreter's lock, on all threads. Arrays that are read must not be changed by another thread
//! meanwhile: results would then mean nothing.

mod arrays;
mod blocks;
mod cluster;
mod device;
mod error;
mod files;
mod gguf;
mod index;
mod model;
mod quantize;
mod train;
mod verify;
mod watch;

/// The module `tercet._tercet`.
///
/// It needs no lock of the interpreter: its classes are frozen and `Sync`, which the compiler checks, and arguments are
/// read without the lock in any case.
#[pyo3::pymodule(gil_used = false)]
mod _tercet {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;
    use tercet_host::simd::Backend;

    #[pymodule_export]
    use super::blocks::{Blocks, encode};
    #[pymodule_export]
    use super::cluster::{KMeansFit, assign};
    #[pymodule_export]
    use super::files::{quantize_file, read, tensors};
    #[pymodule_export]
    use super::gguf::{read_gguf, write_gguf};
    #[pymodule_export]
    use super::index::Index;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::quantize::{Quantized, quantize};
    #[pymodule_export]
    use super::train::train;
    #[pymodule_export]
    use super::verify::verify;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Returns the version, the instruction set in use, those of this machine, and the number of threads.
    #[pyfunction]
    fn info(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let found = PyDict::new(py);
        let backends: Vec<&str> = Backend::all().map(|it| it.isa().name()).collect();
        found.set_item("version", env!("CARGO_PKG_VERSION"))?;
        found.set_item("backend", Backend::default().isa().name())?;
        found.set_item("backends", backends)?;
        found.set_item("threads", rayon::current_num_threads())?;
        Ok(found)
    }
}
