//! k-means.

use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2, PyReadonlyArrayDyn};
use pyo3::prelude::*;
use tercet_core::cluster::Init;
use tercet_core::quant::Grid;
use tercet_host::KMeans;
use tercet_host::cluster::assign_points;
use tercet_host::parallel::Threads;
use tercet_host::points::{Points, Values};

use crate::arrays::lent;
use crate::device;
use crate::error::{raised, refused};
use crate::watch::Watch;

/// Clustered points.
#[pyclass(frozen, module = "tercet")]
pub(crate) struct KMeansFit(tercet_host::KMeansFit);

/// Points of an array with a row each. The values are copied, once.
fn points(array: &PyReadonlyArray2<'_, f32>) -> PyResult<Points> {
    let array = array.as_array();
    let dims = array.ncols();
    let values: Vec<f32> = match array.as_slice() {
        Some(values) => values.to_vec(),
        None => array.iter().copied().collect(),
    };
    Points::from_rows(dims, Values::from(values)).map_err(raised)
}

#[pymethods]
impl KMeansFit {
    /// Clusters the rows of `x`. `on_step` gets the number of each step in its restart, and its inertia.
    #[new]
    #[pyo3(signature = (
        x, clusters, *, restarts, max_iter, tolerance_ppm, seed, random, spherical, batch, weights, centroids, engine,
        on_step
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        py: Python<'_>,
        x: PyReadonlyArray2<'_, f32>,
        clusters: usize,
        restarts: u32,
        max_iter: u32,
        tolerance_ppm: u32,
        seed: u64,
        random: bool,
        spherical: bool,
        batch: Option<usize>,
        weights: Option<PyReadonlyArrayDyn<'_, u32>>,
        centroids: Option<PyReadonlyArray2<'_, f32>>,
        engine: &str,
        on_step: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let points = points(&x)?;
        let centroids = centroids.as_ref().map(self::points).transpose()?;
        let weights = weights.as_ref().map(crate::arrays::values).transpose()?;
        let watch = Watch::new(on_step);
        let found = watch.run(py, || {
            let mut kmeans = KMeans::new(clusters)
                .restarts(restarts)
                .max_iter(max_iter)
                .tolerance_ppm(tolerance_ppm)
                .seed(seed)
                .spherical(spherical);
            if random {
                kmeans = kmeans.init(Init::Random);
            }
            if let Some(batch) = batch {
                kmeans = kmeans.batches(batch);
            }
            if let Some(weights) = weights {
                kmeans = kmeans.weights(weights);
            }
            if let Some(centroids) = &centroids {
                kmeans = kmeans.centroids(centroids);
            }
            let mut kmeans = kmeans.on_step(|step, inertia| {
                watch.tell((step.step, inertia));
            });
            device::fit(engine, &mut kmeans, &points)
        });
        found.map(Self)
    }

    /// The cluster of each point: uint32.
    #[getter]
    fn labels<'py>(this: &Bound<'py, Self>) -> Bound<'py, PyArray1<u32>> {
        let view = ArrayView1::from(this.get().0.labels());
        // SAFETY: the labels are the object's, which is frozen.
        unsafe { lent(&view, this.clone().into_any()) }
    }

    /// The centroids, a row per cluster: float32.
    #[getter]
    fn centroids<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let fit = &this.get().0;
        let shape = (fit.clusters.len(), fit.clustering.dims);
        let view = ArrayView2::from_shape(shape, &fit.centroids).map_err(refused)?;
        // SAFETY: the centroids are the object's, which is frozen.
        Ok(unsafe { lent(&view, this.clone().into_any()) })
    }

    /// The sum of weighted squared distances of the points to their centroids.
    #[getter]
    fn inertia(&self) -> f64 {
        self.0.inertia
    }

    /// The number of iterations of the best restart.
    #[getter]
    fn iterations(&self) -> u32 {
        self.0.clustering.outcome.iterations
    }

    /// The engine that clustered the points.
    #[getter]
    fn engine(&self) -> &str {
        &self.0.by.engine
    }

    /// The codes of the centroids, a row per cluster: int8.
    #[getter]
    fn codes<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray2<i8>>> {
        let fit = &this.get().0;
        let shape = (fit.clusters.len(), fit.clustering.dims);
        let view = ArrayView2::from_shape(shape, &fit.clustering.centroids).map_err(refused)?;
        // SAFETY: the codes are the object's, which is frozen.
        Ok(unsafe { lent(&view, this.clone().into_any()) })
    }

    /// The scale and the zero point of the codes.
    #[getter]
    fn grid(&self) -> (f32, i8) {
        (self.0.codes.grid.scale, self.0.codes.grid.zero_point)
    }
}

/// Returns the nearest of the centroids, which are codes on a grid, of each row of `x`: uint32.
#[pyfunction]
pub(crate) fn assign<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f32>,
    codes: PyReadonlyArray2<'py, i8>,
    grid: (f32, i8),
    spherical: bool,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let points = points(&x)?;
    let codes = codes.as_array();
    let (rows, dims) = codes.dim();
    let values = Values::I8 {
        codes: codes.iter().copied().collect(),
        grid: Grid {
            scale: grid.0,
            zero_point: grid.1,
            low: i8::MIN,
            high: i8::MAX,
        },
    };
    let labels = py.detach(|| {
        let centroids = Points::new("centroids", rows, dims, values)?;
        let found = assign_points(&mut Threads::default(), &points, &centroids, spherical)?;
        Ok(found.assignment.labels)
    });
    Ok(labels.map_err(raised)?.into_pyarray(py))
}
