//! The trait that all storages of rows implement.

use core::ops::Range;

use super::{Hit, Metric, Score, SearchError, Visitor};

/// A borrowed, checked view of rows of the same length, with which queries are compared.
///
/// Implemented by [`super::Int8Rows`], [`super::TernaryRows`] and [`super::FloatRows`].
pub trait Rows: Copy + Send + Sync {
    /// Type of the values of a query.
    type Query: Copy + Send + Sync;
    /// Score of a query and a row under a metric.
    type Score<M: Metric>: Score;

    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns true if there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values per row, at least 1.
    fn dim(&self) -> usize;

    /// Checks a query's length, and that its values are finite.
    ///
    /// # Errors
    /// [`SearchError::QueryLength`]; [`SearchError::QueryNotFinite`] (as query 0) over floats.
    fn check_query(&self, query: &[Self::Query]) -> Result<(), SearchError>;

    /// Scores a range of rows, in order. This is the reference for engines. O(rows · dim), no scratch.
    ///
    /// The query must have passed [`Rows::check_query`]; otherwise the scores have no meaning. Nothing is scored if
    /// the range exceeds the rows.
    fn scan<M: Metric>(
        &self,
        query: &[Self::Query],
        rows: Range<usize>,
        each: impl FnMut(usize, Self::Score<M>),
    );

    /// Calls the `visitor`'s method for this storage, with the rows, the queries and space for hits. An engine with
    /// its own kernels uses this to find out the type of the rows.
    fn visit<M: Metric, V: Visitor>(
        &self,
        queries: &[Self::Query],
        hits: &mut [Hit<Self::Score<M>>],
        visitor: &mut V,
    ) -> V::Output;
}

/// Checks many consecutive queries, and the space for `k` hits of each. Every engine does this first.
///
/// # Errors
/// [`SearchError::QueryLength`] if the queries do not have the rows' length; [`SearchError::Length`] unless `room` is
/// k per query; [`SearchError::QueryNotFinite`].
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
    // If the product saturates, it fits no slice of hits.
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
