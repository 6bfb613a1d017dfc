//! Queries over one base.

use std::fmt;
use std::marker::PhantomData;

use tercet_core::engine::SearchBase;
use tercet_core::search::{Hit, Metric, Rows};
use tercet_host::engine::EngineError;

use crate::batch::{BatchJob, Executor};

/// The job of finding the best rows of `R` by the metric `M`: the request is a [`Query`], the answer its hits, best
/// first, ties by the lower index.
///
/// Queries for the same number of hits are of one kind.
pub struct Searching<R, M>(PhantomData<fn() -> (R, M)>);

/// One query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query<T> {
    /// As many values as a row has.
    pub values: Vec<T>,
    /// Number of hits wanted; there are at most as many as rows.
    pub k: usize,
}

impl<R: Rows, M: Metric> BatchJob for Searching<R, M> {
    type Request = Query<R::Query>;
    type Answer = Vec<Hit<R::Score<M>>>;
    type Error = EngineError;
    type Kind = usize;

    fn kind(request: &Query<R::Query>) -> usize {
        request.k
    }
}

/// [`Searching`] on an engine that holds the rows: [`SearchBase::top_k_all`] of a batch's queries.
///
/// For each request it takes memory for k hits and the query's values, beside the engine's memory. If the engine's
/// memory holds only few queries at a time, the engine itself processes them in parts.
///
/// ```
/// use std::thread;
///
/// use tercet_core::engine::SearchEngine;
/// use tercet_core::scalar::Scalar;
/// use tercet_core::search::{Dot, Int8Rows};
/// use tercet_gpu::batch::executors::{Query, Search};
/// use tercet_gpu::batch::{BatchOptions, Queue, Worker};
///
/// let rows = Int8Rows::new(&[1, 2, 3, 4, 5, 6], 2)?;
/// let base = Scalar.base(rows)?;
/// thread::scope(|scope| {
///     let workers = [Worker::new("scalar", Search::<_, _, Dot>::new(rows, base))];
///     let queue = Queue::in_scope(scope, BatchOptions::default(), workers)?;
///     let hits = queue.submit(Query { values: vec![1, 1], k: 2 })?.wait()?;
///     assert_eq!([hits[0].index, hits[1].index], [2, 1]);
///     assert_eq!(hits[0].score.0, 11);
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Search<R, B, M> {
    rows: R,
    base: B,
    metric: PhantomData<fn() -> M>,
}

impl<R: Rows, B: SearchBase<Rows = R>, M: Metric> Search<R, B, M> {
    /// Returns the work on a base, which is made of these rows.
    pub const fn new(rows: R, base: B) -> Self {
        Self {
            rows,
            base,
            metric: PhantomData,
        }
    }
}

impl<R: Rows, B, M> Search<R, B, M> {
    /// Returns the number of rows, and the values of each.
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows.len(), self.rows.dim())
    }
}

impl<R: Rows, B: SearchBase<Rows = R, Error: Into<EngineError>> + Send, M: Metric>
    Executor<Searching<R, M>> for Search<R, B, M>
{
    /// Checks its length, and for floats that its values are finite.
    fn check(&self, request: &Query<R::Query>) -> Result<(), EngineError> {
        Ok(self.rows.check_query(&request.values)?)
    }

    fn run(
        &mut self,
        &k: &usize,
        requests: &[Query<R::Query>],
    ) -> Result<Vec<Vec<Hit<R::Score<M>>>>, EngineError> {
        // There are at most as many hits as rows: a larger k costs no memory.
        let k = k.min(self.rows.len());
        if k == 0 {
            return Ok(vec![Vec::new(); requests.len()]);
        }
        let values = requests.iter().flat_map(|query| &query.values);
        let queries: Vec<R::Query> = values.copied().collect();
        let mut hits = vec![Hit::default(); k * requests.len()];
        let all = self.base.top_k_all::<M>(&queries, k, &mut hits);
        all.map_err(Into::into)?;
        Ok(hits.chunks_exact(k).map(<[_]>::to_vec).collect())
    }

    fn splits(&self, error: &EngineError) -> bool {
        matches!(error, EngineError::NoRoom(_))
    }
}

impl<R, B: fmt::Debug, M> fmt::Debug for Search<R, B, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search")
            .field("base", &self.base)
            .finish_non_exhaustive()
    }
}
