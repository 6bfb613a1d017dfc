//! Files of tensors.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use tercet_host::convert::Target;
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, ReadOptions};
use tercet_host::{Progress, QuantizeOptions, TensorFile};

use crate::error::{raised, refused};
use crate::watch::Watch;

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

/// Quantizes a file, and returns the report as JSON. `on_progress` gets the bytes that were read, and all to read.
#[pyfunction]
#[pyo3(signature = (input, output, *, to, bits, include, exclude, force, on_progress))]
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
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let target: Target = to.parse().map_err(refused)?;
    let options = QuantizeOptions {
        bits,
        include,
        exclude,
        force,
        ..QuantizeOptions::new(target)
    };
    let watch = Watch::new(on_progress);
    let report = watch.run(py, || {
        let progress = Bytes {
            watch: &watch,
            done: AtomicU64::new(0),
            all: AtomicU64::new(0),
        };
        let model = TensorFile::open(&input).map_err(raised)?;
        let engine = &mut Threads::default();
        tercet_host::quantize(engine, &model, &options, &output, &progress).map_err(raised)
    })?;
    serde_json::to_string(&report).map_err(refused)
}

/// Tells Python the bytes that were read, and how many will be.
struct Bytes<'a> {
    watch: &'a Watch,
    done: AtomicU64,
    all: AtomicU64,
}

impl Progress for Bytes<'_> {
    fn start(&self, bytes: u64) {
        self.all.store(bytes, Ordering::Relaxed);
    }

    fn advance(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.watch.tell((done, self.all.load(Ordering::Relaxed)));
    }
}
