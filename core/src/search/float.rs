//! Rows of floats.

use core::ops::Range;

use super::int8::{check_query, check_shape, check_table, part, rows_of};
use super::{Hit, Metric, Rows, SearchError, Visitor};
use crate::number::{self, Element};

/// Rows of f32, f16 or bf16, row-major, all finite. Queries are f32.
///
/// f16 and bf16 convert to f32 exactly, so the scores are those of the converted copy. A scan takes about 1.2 KiB of
/// stack for the lanes of its sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatRows<'a, T> {
    values: &'a [T],
    dim: usize,
    norms: Option<&'a [f64]>,
}

impl<'a, T: Element> FloatRows<'a, T> {
    /// Borrows rows of `dim` values each, after one pass that checks them. `dim` may have any length.
    ///
    /// # Errors
    /// [`SearchError::NoColumns`]; [`SearchError::Shape`] if the values do not fill whole rows;
    /// [`SearchError::NotFinite`].
    pub fn new(values: &'a [T], dim: usize) -> Result<Self, SearchError> {
        if dim == 0 {
            return Err(SearchError::NoColumns);
        }
        check_shape(values.len(), dim)?;
        if let Some(index) = number::first_not_finite(values) {
            return Err(SearchError::NotFinite {
                row: index / dim,
                column: index % dim,
            });
        }
        Ok(Self {
            values,
            dim,
            norms: None,
        })
    }

    /// Uses the rows' squared lengths from the caller, as [`FloatRows::write_norms`] computes them. Otherwise every
    /// search by cosine computes them again. The values are not checked.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless there is one per row.
    pub fn with_norms(mut self, norms: &'a [f64]) -> Result<Self, SearchError> {
        check_table(self.len(), norms.len())?;
        self.norms = Some(norms);
        Ok(self)
    }

    /// Writes the squared length of each row, in f64, in the order of [`crate::number::lanes`].
    ///
    /// # Errors
    /// [`SearchError::Length`] unless `out` holds one per row.
    pub fn write_norms(&self, out: &mut [f64]) -> Result<(), SearchError> {
        check_table(self.len(), out.len())?;
        for (out, row) in out.iter_mut().zip(rows_of(self.values, self.dim)) {
            *out = norm(row);
        }
        Ok(())
    }

    /// Returns the rows' squared lengths, if they were given.
    pub fn norms(&self) -> Option<&'a [f64]> {
        self.norms
    }

    /// Returns the values, row-major.
    pub fn values(&self) -> &'a [T] {
        self.values
    }
}

impl<T: Element + Send + Sync> Rows for FloatRows<'_, T> {
    type Query = f32;
    type Score<M: Metric> = M::Float;

    fn len(&self) -> usize {
        self.values.len() / self.dim.max(1)
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn check_query(&self, query: &[f32]) -> Result<(), SearchError> {
        check_query(self.dim, query)?;
        match number::first_not_finite(query) {
            Some(column) => Err(SearchError::QueryNotFinite { query: 0, column }),
            None => Ok(()),
        }
    }

    #[inline]
    fn scan<M: Metric>(
        &self,
        query: &[f32],
        rows: Range<usize>,
        mut each: impl FnMut(usize, M::Float),
    ) {
        let query_norm = if M::FLOAT_NORMS { norm(query) } else { 0.0 };
        let values = part(self.values, &rows, self.dim);
        let norms = self.norms.and_then(|norms| norms.get(rows.clone()));
        let mut norms = norms.map(|norms| norms.iter());
        for (index, row) in rows.zip(rows_of(values, self.dim)) {
            let known = norms.as_mut().and_then(Iterator::next);
            let row_norm = match known {
                _ if !M::FLOAT_NORMS => 0.0,
                Some(&known) => known,
                None => norm(row),
            };
            each(index, M::float(query, row, query_norm, row_norm));
        }
    }

    #[inline]
    fn visit<M: Metric, V: Visitor>(
        &self,
        queries: &[f32],
        hits: &mut [Hit<M::Float>],
        visitor: &mut V,
    ) -> V::Output {
        visitor.float::<M, T>(*self, queries, hits)
    }
}

/// Returns the squared length of a row. Not inlined: a caller with several scans would hold as many sets of lanes.
#[inline(never)]
fn norm<T: Element>(row: &[T]) -> f64 {
    number::sum_of_squares(row)
}
