//! Data that stays on a CUDA device.

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{ClusterEngine, ClusterProblem, Refused, SearchBase};
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans_of};
use tercet_host::engine::EngineError;

use super::Residency;
use crate::engine::cluster::DevicePoints;
use crate::engine::{Cuda, CudaError, DeviceLayer, DeviceRows};

/// What one device and several do alike: points, and layers that are held.
macro_rules! held_alike {
    () => {
        fn hold_points(&mut self, points: &Points<'_>) -> Result<Self::Points, EngineError> {
            Ok(self.points(points)?)
        }

        fn kmeans_held(
            &mut self,
            _: &Points<'_>,
            held: &Self::Points,
            options: &KmeansOptions,
        ) -> Result<Clustering, EngineError> {
            let update = options.sphere.map_or(Update::Mean, Update::Sphere);
            let mut clusters = self.clusters_of(held, options.clusters, update)?;
            Ok(kmeans_of(&mut clusters, options, &mut |_| ())?)
        }

        fn assign_held(
            &mut self,
            points: &Points<'_>,
            held: &Self::Points,
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

        fn hold_layer(&mut self, layer: &Layer<'_>) -> Result<Self::Layer, EngineError> {
            match self.layer(layer) {
                // A weight of 128, which only the processor's kernels accept.
                Err(error @ CudaError::Refused(Refused::Linear(LinearError::CodeRange { .. }))) => {
                    Err(EngineError::NoRoom(error.into()))
                }
                layer => Ok(layer?),
            }
        }
    };
}
pub(super) use held_alike;

impl Residency for Cuda {
    type Points = DevicePoints;
    type Rows = DeviceRows;
    type Layer = DeviceLayer;

    fn hold_rows<R: Rows>(&mut self, rows: &R) -> Result<DeviceRows, EngineError> {
        Ok(self.rows(rows)?)
    }

    fn search_held<M: Metric, R: Rows>(
        &mut self,
        rows: R,
        held: &DeviceRows,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, EngineError> {
        let mut base = self.base_of(rows, held)?;
        Ok(base.top_k_all::<M>(queries, k, hits)?)
    }

    held_alike!();

    fn multiply_held(
        &mut self,
        _: &Layer<'_>,
        held: &DeviceLayer,
        x: I8Sym<'_>,
        scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        let x = self.activations(held, x)?;
        let scales = self.upload(scales)?;
        let mut there = self.zeros(out.len())?;
        self.multiply(held, &x, &scales, &mut there)?;
        Ok(self.read(&there, out)?)
    }
}
