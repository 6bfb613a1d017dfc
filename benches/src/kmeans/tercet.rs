//! Tercet as a contender.

use super::{Data, Pool};
use crate::peers::python::Fit;
use std::time::Instant;
use tercet_core::cluster::float::Labelled;
use tercet_core::cluster::{ClusterError, Lloyd, Points, Update, lloyd};
use tercet_core::engine::{Buffers, ClusterEngine, ClusterProblem};
use tercet_core::quant::calibrate::{Method, Scheme};
use tercet_core::scalar::Scalar;
use tercet_host::cluster;
use tercet_host::parallel::Threads;
use tercet_host::points::{self, Codes, Values};

/// The codes of points and the memory to cluster them.
pub(super) struct Tercet<'a> {
    data: &'a Data,
    codes: Codes,
    /// The first centroids.
    start: Vec<i8>,
    labels: Vec<u32>,
    distances: Vec<u32>,
    centroids: Vec<i8>,
    norms: Vec<i32>,
    sums: Vec<i64>,
    counts: Vec<u64>,
}

impl<'a> Tercet<'a> {
    /// Puts points on the symmetric int8 grid of their largest magnitude.
    pub(super) fn new(data: &'a Data) -> Self {
        let (n, table) = (data.values.len() / data.dims, data.k * data.dims);
        let values = Values::F32(data.values.clone());
        let codes = points::Points::new(&data.name, n, data.dims, values)
            .and_then(|points| points.to_codes(Method::AbsMax, Scheme::Symmetric))
            .unwrap_or_else(|error| panic!("{error}"));
        Self {
            data,
            start: data.gather(&codes.codes),
            codes,
            labels: vec![0; n],
            distances: vec![0; n],
            centroids: vec![0; table],
            norms: vec![0; data.k],
            sums: vec![0; table],
            counts: vec![0; data.k],
        }
    }

    /// Takes `steps` steps from the first centroids.
    pub(super) fn fit(&mut self, pool: Pool, steps: u32) -> Fit {
        let fit = match pool {
            Pool::One => self.run(&mut Scalar, steps),
            Pool::All => self.run(&mut Threads::default(), steps),
        };
        fit.unwrap_or_else(|error| panic!("{error}"))
    }

    fn run<E>(&mut self, engine: &mut E, steps: u32) -> Result<Fit, ClusterError>
    where
        E: ClusterEngine<Error = ClusterError>,
    {
        let points = Points::new(&self.codes.codes, self.data.dims)?;
        let buffers = Buffers {
            labels: &mut self.labels,
            distances: &mut self.distances,
            centroids: &mut self.centroids,
            kept: &mut [],
            norms: &mut self.norms,
            sums: &mut self.sums,
            counts: &mut self.counts,
        };
        let options = Lloyd {
            max_iter: steps,
            tol_ppm: 0,
        };
        let mut clusters = engine.clusters(points, self.data.k, Update::Mean, buffers)?;
        clusters.set_centroids(&self.start)?;
        let start = Instant::now();
        let outcome = lloyd(&mut clusters, &options, &mut |_, _| ())?;
        Ok(Fit {
            seconds: start.elapsed().as_secs_f64(),
            steps: outcome.iterations,
        })
    }

    /// Σ‖x − c‖² of the unquantized points to the int8 centroids of the last fit, in the points' units.
    pub(super) fn inertia(&self) -> f64 {
        let centroids = self.centroids.iter();
        let centroids: Vec<f32> = centroids.map(|&c| self.codes.grid.value(c)).collect();
        let labelled = Labelled {
            values: &self.data.values[..],
            dims: self.data.dims,
            weights: None,
            labels: &self.labels,
            centroids: &centroids,
        };
        cluster::inertia(&labelled).unwrap_or_else(|error| panic!("{error}"))
    }
}
