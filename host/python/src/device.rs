//! Clustering on the engine that Python names.

use pyo3::PyResult;
use tercet_host::points::Points;
use tercet_host::{KMeans, KMeansFit};

use crate::error::{raised, refused};

/// Clusters points on all threads (`cpu`) or on the first NVIDIA device (`cuda`).
pub(crate) fn fit(engine: &str, kmeans: &mut KMeans<'_>, points: &Points) -> PyResult<KMeansFit> {
    match engine {
        "cpu" => kmeans.fit(points).map_err(raised),
        "cuda" => on_cuda(kmeans, points),
        other => Err(refused(format_args!(
            "no engine is called `{other}`; there are cpu and cuda"
        ))),
    }
}

#[cfg(feature = "cuda")]
fn on_cuda(kmeans: &mut KMeans<'_>, points: &Points) -> PyResult<KMeansFit> {
    use std::sync::{Mutex, PoisonError};

    use pyo3::exceptions::PyRuntimeError;
    use tercet_gpu::engine::Cuda;

    /// The device between two clusterings: to open one takes longer than most.
    static OPEN: Mutex<Option<Cuda>> = Mutex::new(None);
    let open = || OPEN.lock().unwrap_or_else(PoisonError::into_inner);

    let held = open().take();
    let opened = held.map_or_else(Cuda::first, Ok);
    let mut cuda = opened.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    // A device that failed is not kept, nor is one whose work an exception ended.
    let fit = kmeans.fit_on(&mut cuda, points).map_err(raised)?;
    *open() = Some(cuda);
    Ok(fit)
}

#[cfg(not(feature = "cuda"))]
fn on_cuda(_: &mut KMeans<'_>, _: &Points) -> PyResult<KMeansFit> {
    Err(refused(
        "this build has no CUDA; build the package with its feature cuda",
    ))
}
