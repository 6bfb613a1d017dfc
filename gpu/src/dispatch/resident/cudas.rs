//! Data that stays on several CUDA devices, each with its share.

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{ClusterEngine, ClusterProblem, Refused, SearchBase, SearchEngine};
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans_of};
use tercet_host::engine::EngineError;

use super::Residency;
use crate::engine::cluster::CudasPoints;
use crate::engine::{CudaError, Cudas, CudasLayer};

impl Residency for Cudas {
    type Points = CudasPoints;
    /// Rows are copied for each search.
    type Rows = ();
    type Layer = CudasLayer;

    fn hold_points(&mut self, points: &Points<'_>) -> Result<CudasPoints, EngineError> {
        Ok(self.points(points)?)
    }

    fn kmeans_held(
        &mut self,
        _: &Points<'_>,
        held: &CudasPoints,
        options: &KmeansOptions,
    ) -> Result<Clustering, EngineError> {
        let update = options.sphere.map_or(Update::Mean, Update::Sphere);
        let mut clusters = self.clusters_of(held, options.clusters, update)?;
        Ok(kmeans_of(&mut clusters, options, &mut |_| ())?)
    }

    fn assign_held(
        &mut self,
        points: &Points<'_>,
        held: &CudasPoints,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), EngineError> {
        let k = centroids.len() / points.dims();
        if k > points.counted() {
            // More centroids than a clustering may have: assign in parts, copying the points.
            return Ok(self.nearest(*points, centroids, labels, distances)?);
        }
        let mut clusters = self.clusters_of(held, k, Update::Mean)?;
        clusters.set_centroids(centroids)?;
        clusters.measure()?;
        clusters.read_labels(labels)?;
        Ok(clusters.read_distances(distances)?)
    }

    fn hold_rows<R: Rows>(&mut self, _: &R) -> Result<(), EngineError> {
        Ok(())
    }

    fn search_held<M: Metric, R: Rows>(
        &mut self,
        rows: R,
        (): &(),
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, EngineError> {
        Ok(self.base(rows)?.top_k_all::<M>(queries, k, hits)?)
    }

    fn hold_layer(&mut self, layer: &Layer<'_>) -> Result<CudasLayer, EngineError> {
        match self.layer(layer) {
            // A weight of 128, which only the processor's kernels accept.
            Err(error @ CudaError::Refused(Refused::Linear(LinearError::CodeRange { .. }))) => {
                Err(EngineError::NoRoom(error.into()))
            }
            layer => Ok(layer?),
        }
    }

    fn multiply_held(
        &mut self,
        _: &Layer<'_>,
        held: &CudasLayer,
        x: I8Sym<'_>,
        scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        Ok(self.multiply(held, x, scales, out)?)
    }
}
