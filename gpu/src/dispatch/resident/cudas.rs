//! Data that stays on several CUDA devices, each with its share.

use tercet_core::cluster::{Points, Update};
use tercet_core::engine::{ClusterEngine, ClusterProblem, Refused, SearchBase, SearchEngine};
use tercet_core::linear::{I8Sym, Layer, LinearError};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::cluster::{Clustering, KmeansOptions, kmeans_of};
use tercet_host::engine::EngineError;

use super::Residency;
use super::cuda::held_alike;
use crate::engine::cluster::CudasPoints;
use crate::engine::{CudaError, Cudas, CudasLayer};

impl Residency for Cudas {
    type Points = CudasPoints;
    /// Rows are copied for each search.
    type Rows = ();
    type Layer = CudasLayer;

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

    held_alike!();

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
