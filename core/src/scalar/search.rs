//! Search, row by row.

use super::Scalar;
use crate::engine::{SearchBase, SearchEngine};
use crate::search::{Hit, Metric, Rows, SearchError, TopK, Within, check_many};

impl SearchEngine for Scalar {
    type Error = SearchError;
    type Base<'a, R: Rows + 'a> = Base<R>;

    fn base<'a, R: Rows + 'a>(&'a mut self, rows: R) -> Result<Base<R>, SearchError> {
        Ok(Base::new(rows))
    }
}

/// The reference engine's [`SearchBase`]: borrowed rows, no state, no scratch.
#[derive(Clone, Copy, Debug)]
pub struct Base<R> {
    rows: R,
}

impl<R: Rows> Base<R> {
    /// Creates a base of rows.
    pub fn new(rows: R) -> Self {
        Self { rows }
    }
}

impl<R: Rows> SearchBase for Base<R> {
    type Rows = R;
    type Error = SearchError;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.rows.dim()
    }

    fn top_k<M: Metric>(
        &mut self,
        query: &[R::Query],
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        self.rows.check_query(query)?;
        let mut best = TopK::new(hits);
        let all = 0..self.rows.len();
        self.rows
            .scan::<M>(query, all, |index, score| best.push(index, score));
        Ok(best.into_sorted().len())
    }

    fn top_k_all<M: Metric>(
        &mut self,
        queries: &[R::Query],
        k: usize,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        check_many(&self.rows, queries, k, hits.len())?;
        if k == 0 {
            return Ok(0);
        }
        let dim = self.rows.dim().max(1);
        let (mut queries, mut hits) = (queries, hits);
        while let Some((query, next)) = queries.split_at_checked(dim)
            && let Some((best, room)) = hits.split_at_mut_checked(k)
        {
            self.top_k::<M>(query, best)?;
            (queries, hits) = (next, room);
        }
        Ok(k.min(self.rows.len()))
    }

    fn range<M: Metric>(
        &mut self,
        query: &[R::Query],
        threshold: f32,
        hits: &mut [Hit<R::Score<M>>],
    ) -> Result<usize, SearchError> {
        self.rows.check_query(query)?;
        let mut within = Within::new(threshold, hits)?;
        let all = 0..self.rows.len();
        self.rows
            .scan::<M>(query, all, |index, score| within.push(index, score));
        Ok(within.total())
    }
}
