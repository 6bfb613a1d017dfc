//! The engine traits for search.

use crate::search::{Hit, Metric, Rows, SearchError};

/// An engine that searches matrices.
pub trait SearchEngine {
    /// The engine's error; search errors convert into it.
    type Error: From<SearchError> + core::fmt::Display;

    /// The engine's representation of one matrix.
    type Base<'a, R: Rows + 'a>: SearchBase<Rows = R, Error = Self::Error>
    where
        Self: 'a;

    /// Prepares the rows for many queries.
    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Self::Base<'a, R>, Self::Error>;
}

/// The score of a metric over the rows of a base.
pub type BaseScore<B, M> = <<B as SearchBase>::Rows as Rows>::Score<M>;
/// Type of the values of a query of a base.
pub type BaseQuery<B> = <<B as SearchBase>::Rows as Rows>::Query;

/// A matrix that an engine holds while it is searched.
///
/// The hits have the same indices and scores as those of [`crate::scalar::Scalar`], bit for bit.
pub trait SearchBase {
    /// The storage of the rows.
    type Rows: Rows;
    /// The engine's error; search errors convert into it.
    type Error: From<SearchError>;

    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns true if there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values per row.
    fn dim(&self) -> usize;

    /// Writes the best rows to `hits`, best first, with ties to the lower index. Returns their number: k =
    /// `hits.len()`, or the number of rows if that is smaller.
    ///
    /// # Errors
    /// [`SearchError::QueryLength`]; [`SearchError::QueryNotFinite`].
    fn top_k<M: Metric>(
        &mut self,
        query: &[BaseQuery<Self>],
        hits: &mut [Hit<BaseScore<Self, M>>],
    ) -> Result<usize, Self::Error>;

    /// Writes the best rows for each of many consecutive queries: those of query i go to the i-th k elements of
    /// `hits`, each as in [`SearchBase::top_k`]. Returns the number of hits per query, which is `k` or the number of
    /// rows.
    ///
    /// # Errors
    /// Those of [`SearchBase::top_k`]; [`SearchError::Length`] unless `hits` holds k elements per query.
    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[BaseQuery<Self>],
        k: usize,
        hits: &mut [Hit<BaseScore<Self, M>>],
    ) -> Result<usize, Self::Error>;

    /// Writes the rows at least as good as `threshold` to `hits` in index order, and returns their number. If the
    /// slice is too short, it holds the first of them; call again with a slice of that length to get all.
    ///
    /// The threshold is compared with the exact score; see [`crate::search::Score::reaches`].
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
