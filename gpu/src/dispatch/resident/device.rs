//! The operations of a device on data that stays there.

use std::fmt;

use tercet_core::cluster::Points;
use tercet_core::engine::{ClusterEngine, LinearEngine, SearchBase, SearchEngine};
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::scalar::Scalar;
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans};
use tercet_host::engine::EngineError;

/// A device that keeps data between calls.
///
/// Each call also receives the host's data, which is used for checks or for a last step on the host. The bits are those
/// of the calls without residence. If the data on the device differs from the host's, the results are meaningless.
pub trait Residency {
    /// Points on the device.
    type Points: fmt::Debug + Send + Sync + 'static;
    /// Rows to search on the device.
    type Rows: fmt::Debug + Send + Sync + 'static;
    /// A layer on the device.
    type Layer: fmt::Debug + Send + Sync + 'static;

    /// Copies points to the device. O(n · d).
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], [`EngineError::Failed`].
    fn hold_points(&mut self, points: &Points<'_>) -> Result<Self::Points, EngineError>;

    /// Clusters the held points.
    ///
    /// # Errors
    /// Those of [`kmeans`].
    fn kmeans_held(
        &mut self,
        points: &Points<'_>,
        held: &Self::Points,
        options: &KmeansOptions,
    ) -> Result<Clustering, EngineError>;

    /// Assigns each held point to the nearest centroid, with a label and a distance for each point. The centroids are
    /// whole.
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], [`EngineError::Failed`].
    fn assign_held(
        &mut self,
        points: &Points<'_>,
        held: &Self::Points,
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), EngineError>;

    /// Copies rows to search to the device. O(rows · dim).
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], [`EngineError::Failed`].
    fn hold_rows<R: Rows>(&mut self, rows: &R) -> Result<Self::Rows, EngineError>;

    /// Searches the held rows, as [`tercet_core::engine::SearchBase::top_k_all`].
    ///
    /// # Errors
    /// Those of a search.
    fn search_held<M: Metric, R: Rows>(
        &mut self,
        rows: R,
        held: &Self::Rows,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, EngineError>;

    /// Copies a layer to the device. O(rows · cols).
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], also for weights without kernels on the device; [`EngineError::Failed`].
    fn hold_layer(&mut self, layer: &Layer<'_>) -> Result<Self::Layer, EngineError>;

    /// Multiplies the held layer with whole rows of activations. There is a scale for each row of activations, and an
    /// output for each of them and each row of weights.
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], [`EngineError::Failed`].
    fn multiply_held(
        &mut self,
        layer: &Layer<'_>,
        held: &Self::Layer,
        x: I8Sym<'_>,
        scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), EngineError>;
}

/// The host as a device: it already holds its own data.
impl Residency for Scalar {
    type Points = ();
    type Rows = ();
    type Layer = ();

    fn hold_points(&mut self, _: &Points<'_>) -> Result<(), EngineError> {
        Ok(())
    }

    fn kmeans_held(
        &mut self,
        points: &Points<'_>,
        (): &(),
        options: &KmeansOptions,
    ) -> Result<Clustering, EngineError> {
        let (values, weights) = (points.values(), points.weights());
        let found = kmeans(self, values, points.dims(), weights, options, &mut |_| ());
        Ok(found?)
    }

    fn assign_held(
        &mut self,
        points: &Points<'_>,
        (): &(),
        centroids: &[i8],
        labels: &mut [u32],
        distances: &mut [u32],
    ) -> Result<(), EngineError> {
        Ok(self.nearest(*points, centroids, labels, distances)?)
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

    fn hold_layer(&mut self, _: &Layer<'_>) -> Result<(), EngineError> {
        Ok(())
    }

    fn multiply_held(
        &mut self,
        layer: &Layer<'_>,
        (): &(),
        x: I8Sym<'_>,
        scales: &[f32],
        out: &mut [f32],
    ) -> Result<(), EngineError> {
        let mut scratch = vec![0; layer.weights().scratch_len()];
        Ok(self.matmat(layer, x, scales, out, &mut scratch)?)
    }
}
