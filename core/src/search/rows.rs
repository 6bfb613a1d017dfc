//! What the storages have in common.

use core::ops::Range;

use super::{Hit, Metric, Score, SearchError, Visitor};

/// Rows of one length that queries are compared with: a borrowed, checked view.
///
/// Implemented by [`super::Int8Rows`], [`super::TernaryRows`] and [`super::FloatRows`].
pub trait Rows: Copy + Send + Sync {
    /// What queries are made of.
    type Query: Copy + Send + Sync;
    /// What a metric makes of a query and a row here.
    type Score<M: Metric>: Score;

    /// How many rows.
    fn len(&self) -> usize;

    /// True without rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values in a row, at least 1.
    fn dim(&self) -> usize;

    /// Refuses a query that does not fit.
    ///
    /// # Errors
    /// [`SearchError::QueryLength`]; [`SearchError::QueryNotFinite`] (as query 0) over floats.
    fn check_query(&self, query: &[Self::Query]) -> Result<(), SearchError>;

    /// Scores a range of rows, in order: the reference for what engines do. O(rows · dim), no scratch.
    ///
    /// The query must have passed [`Rows::check_query`], else scores mean nothing. Nothing is scored where the range does not
    /// lie within the rows.
    fn scan<M: Metric>(
        &self,
        query: &[Self::Query],
        rows: Range<usize>,
        each: impl FnMut(usize, Self::Score<M>),
    );

    /// Hands the rows to what `visitor` has for their storage, with queries and room for hits: how an engine with kernels of
    /// its own learns what the rows are made of.
    fn visit<M: Metric, V: Visitor>(
        &self,
        queries: &[Self::Query],
        hits: &mut [Hit<Self::Score<M>>],
        visitor: &mut V,
    ) -> V::Output;
}

/// Checks many queries that lie one after another, and room for `k` hits of each; every engine's first step.
///
/// # Errors
/// [`SearchError::QueryLength`] where the queries do not have the rows' length; [`SearchError::Length`] unless `room` is k
/// for each; [`SearchError::QueryNotFinite`].
pub fn check_many<R: Rows>(
    rows: &R,
    queries: &[R::Query],
    k: usize,
    room: usize,
) -> Result<(), SearchError> {
    let dim = rows.dim().max(1);
    if !queries.len().is_multiple_of(dim) {
        return Err(SearchError::QueryLength {
            expected: dim,
            found: queries.len(),
        });
    }
    // Saturated, it fits no slice of hits.
    let expected = (queries.len() / dim).saturating_mul(k);
    if expected != room {
        return Err(SearchError::Length {
            expected,
            found: room,
        });
    }
    for (number, query) in queries.chunks_exact(dim).enumerate() {
        rows.check_query(query).map_err(|error| match error {
            SearchError::QueryNotFinite { column, .. } => SearchError::QueryNotFinite {
                query: number,
                column,
            },
            other => other,
        })?;
    }
    Ok(())
}
