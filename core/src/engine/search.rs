//! What an engine does with a matrix to search.

use crate::search::{Hit, Metric, Rows, SearchError};

/// An engine that searches.
pub trait SearchEngine {
    /// What can fail; refusals of search convert into it.
    type Error: From<SearchError> + core::fmt::Display;

    /// The engine's holder of one matrix.
    type Base<'a, R: Rows + 'a>: SearchBase<Rows = R, Error = Self::Error>
    where
        Self: 'a;

    /// Takes up the rows that queries are compared with, once for many of them.
    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Self::Base<'a, R>, Self::Error>;
}

/// The score of a metric over the rows of a base.
pub type BaseScore<B, M> = <<B as SearchBase>::Rows as Rows>::Score<M>;
/// What the queries of a base are made of.
pub type BaseQuery<B> = <<B as SearchBase>::Rows as Rows>::Query;

/// A matrix that an engine holds while it is searched.
///
/// Hits are those of [`crate::scalar::Scalar`]: indices and scores, to the bit.
pub trait SearchBase {
    /// The storage of the rows.
    type Rows: Rows;
    /// The engine's failures; refusals of search convert into it.
    type Error: From<SearchError>;

    /// How many rows.
    fn len(&self) -> usize;

    /// True without rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values in a row.
    fn dim(&self) -> usize;

    /// Writes the best rows to `hits`, best first, ties by the lower index, and returns how many: k = `hits.len()`, or all
    /// rows where those are fewer.
    ///
    /// # Errors
    /// [`SearchError::QueryLength`], [`SearchError::QueryNotFinite`].
    fn top_k<M: Metric>(
        &mut self,
        query: &[BaseQuery<Self>],
        hits: &mut [Hit<BaseScore<Self, M>>],
    ) -> Result<usize, Self::Error>;

    /// Writes the best rows for each of many queries that lie one after another: those of query i to the i-th k of
    /// `hits`, each as [`SearchBase::top_k`] does. Returns how many there are for each query, which is `k` or the number of rows.
    ///
    /// # Errors
    /// Those of [`SearchBase::top_k`]; [`SearchError::Length`] unless `hits` holds k for each query.
    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[BaseQuery<Self>],
        k: usize,
        hits: &mut [Hit<BaseScore<Self, M>>],
    ) -> Result<usize, Self::Error>;

    /// Writes the rows at least as good as `threshold` to `hits` in index order and returns how many there are. Where
    /// they are more than the slice holds, it has the first of them; call again with a slice of that length for all.
    ///
    /// The threshold is compared with the exact score, see [`crate::search::Score::reaches`].
    ///
    /// # Errors
    /// Those of [`SearchBase::top_k`]; [`SearchError::Threshold`] for NaN.
    fn range<M: Metric>(
        &mut self,
        query: &[BaseQuery<Self>],
        threshold: f32,
        hits: &mut [Hit<BaseScore<Self, M>>],
    ) -> Result<usize, Self::Error>;
}
