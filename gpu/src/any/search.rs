//! Searching on any engine.

use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::scalar::{self, Scalar};
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::engine::{EngineError, FlowEngine};
use tercet_host::parallel::Threads;

use super::{AnyEngine, any};

impl<D: FlowEngine> SearchEngine for AnyEngine<'_, D> {
    type Error = EngineError;
    type Base<'a, R: Rows + 'a>
        = AnyBase<'a, D, R>
    where
        Self: 'a;

    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<AnyBase<'a, D, R>, EngineError> {
        Ok(match self {
            Self::Scalar(engine) => AnyBase::Scalar(Scalar::base(engine, rows)?),
            Self::Threads(engine) => AnyBase::Threads(Threads::base(engine, rows)?),
            Self::Device(engine) => AnyBase::Device(engine.base(rows).map_err(Into::into)?),
        })
    }
}

/// Rows that an [`AnyEngine`] searches.
#[derive(Debug)]
pub enum AnyBase<'a, D: SearchEngine + 'a, R: Rows + 'a> {
    /// On core's loops.
    Scalar(scalar::Base<R>),
    /// On the processor's threads.
    Threads(<Threads as SearchEngine>::Base<'a, R>),
    /// On a device.
    Device(D::Base<'a, R>),
}

impl<'a, D, R: Rows + 'a> SearchBase for AnyBase<'a, D, R>
where
    D: SearchEngine<Error: Into<EngineError>> + 'a,
{
    type Rows = R;
    type Error = EngineError;

    fn len(&self) -> usize {
        any!(AnyBase, self, base => base.len())
    }

    fn dim(&self) -> usize {
        any!(AnyBase, self, base => base.dim())
    }

    fn top_k<M: Metric>(
        &mut self,
        query: &[R::Query],
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, EngineError> {
        any!(AnyBase, self, base => base.top_k::<M>(query, hits).map_err(Into::into))
    }

    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, EngineError> {
        any!(AnyBase, self, base => base.top_k_all::<M>(queries, k, hits).map_err(Into::into))
    }

    fn range<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, EngineError> {
        any!(AnyBase, self, base => base.range::<M>(query, threshold, hits).map_err(Into::into))
    }
}
