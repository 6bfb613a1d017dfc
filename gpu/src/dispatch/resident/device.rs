//! What a device does with data that stays there.

use std::fmt;

use tercet_core::cluster::Points;
use tercet_core::engine::{ClusterEngine, LinearEngine, SearchBase, SearchEngine};
use tercet_core::linear::{I8Sym, Layer};
use tercet_core::scalar::Scalar;
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans};
use tercet_host::engine::EngineError;

/// A device that data stays on between calls.
///
/// Each call is given the host's data beside the device's: what is checked by it, or computed with it in the end. Bits are those of the
/// calls without residence. Where the data there is another than the host's, what comes back means nothing.
pub trait Residency {
    /// Points there.
    type Points: fmt::Debug + Send + Sync + 'static;
    /// Rows to search there.
    type Rows: fmt::Debug + Send + Sync + 'static;
    /// A layer there.
    type Layer: fmt::Debug + Send + Sync + 'static;

    /// Brings points there. O(n · d).
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], [`EngineError::Failed`].
    fn hold_points(&mut self, points: &Points<'_>) -> Result<Self::Points, EngineError>;

    /// Clusters them.
    ///
    /// # Errors
    /// Those of [`kmeans`].
    fn kmeans_held(
        &mut self,
        points: &Points<'_>,
        held: &Self::Points,
        options: &KmeansOptions,
    ) -> Result<Clustering, EngineError>;

    /// Gives each the nearest of centroids, whole ones, with a label and a distance for each point.
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

    /// Brings rows to search there. O(rows · dim).
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], [`EngineError::Failed`].
    fn hold_rows<R: Rows>(&mut self, rows: &R) -> Result<Self::Rows, EngineError>;

    /// Searches them, as [`tercet_core::engine::SearchBase::top_k_all`].
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

    /// Brings a layer there. O(rows · cols).
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], also for weights that the device has no kernels for; [`EngineError::Failed`].
    fn hold_layer(&mut self, layer: &Layer<'_>) -> Result<Self::Layer, EngineError>;

    /// Multiplies it with whole rows of activations; a scale for each, and an output for each and each row of weights.
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

/// The host as a device: what it holds is what is there.
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
