//! Rows of int8 codes.

use core::ops::Range;

use super::{Hit, MAX_DIM, Metric, Rows, SearchError, Visitor};
use crate::arch::{dot, norm};

/// int8 rows, row-major, one byte per value; all 256 codes are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int8Rows<'a> {
    values: &'a [i8],
    dim: usize,
    norms: Option<&'a [u32]>,
}

impl<'a> Int8Rows<'a> {
    /// Borrows rows of `dim` values each. O(1).
    ///
    /// # Errors
    /// [`SearchError::NoColumns`]; [`SearchError::TooWide`] above [`MAX_DIM`]; [`SearchError::Shape`] if the values
    /// do not fill whole rows.
    pub fn new(values: &'a [i8], dim: usize) -> Result<Self, SearchError> {
        check_dim(dim)?;
        check_shape(values.len(), dim)?;
        Ok(Self {
            values,
            dim,
            norms: None,
        })
    }

    /// Uses the rows' squared lengths from the caller, as [`Int8Rows::write_norms`] computes them. Otherwise every
    /// search by a metric that needs them computes them again. The values are not checked.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless there is one per row.
    pub fn with_norms(mut self, norms: &'a [u32]) -> Result<Self, SearchError> {
        check_table(self.len(), norms.len())?;
        self.norms = Some(norms);
        Ok(self)
    }

    /// Writes the squared length of each row.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless `out` holds one per row.
    pub fn write_norms(&self, out: &mut [u32]) -> Result<(), SearchError> {
        check_table(self.len(), out.len())?;
        for (out, row) in out.iter_mut().zip(rows_of(self.values, self.dim)) {
            *out = norm(row);
        }
        Ok(())
    }

    /// Returns the rows' squared lengths, if they were given.
    pub fn norms(&self) -> Option<&'a [u32]> {
        self.norms
    }

    /// Returns the values, row-major.
    pub fn values(&self) -> &'a [i8] {
        self.values
    }
}

impl Rows for Int8Rows<'_> {
    type Query = i8;
    type Score<M: Metric> = M::Integer;

    fn len(&self) -> usize {
        // `dim` is never 0; `max` shows this to the compiler.
        self.values.len() / self.dim.max(1)
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn check_query(&self, query: &[i8]) -> Result<(), SearchError> {
        check_query(self.dim, query)
    }

    #[inline]
    fn scan<M: Metric>(
        &self,
        query: &[i8],
        rows: Range<usize>,
        mut each: impl FnMut(usize, M::Integer),
    ) {
        let query_norm = if M::INTEGER_NORMS { norm(query) } else { 0 };
        let values = part(self.values, &rows, self.dim);
        let norms = self.norms.and_then(|norms| norms.get(rows.clone()));
        let mut norms = norms.map(|norms| norms.iter());
        for (index, row) in rows.zip(rows_of(values, self.dim)) {
            let known = norms.as_mut().and_then(Iterator::next);
            let row_norm = match known {
                _ if !M::INTEGER_NORMS => 0,
                Some(&known) => known,
                None => norm(row),
            };
            each(index, M::integer(dot(query, row), query_norm, row_norm));
        }
    }

    #[inline]
    fn visit<M: Metric, V: Visitor>(
        &self,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
        visitor: &mut V,
    ) -> V::Output {
        visitor.int8::<M>(*self, queries, hits)
    }
}

/// Returns the elements of a range of rows with `row` elements each; none if the range exceeds the rows.
pub(super) fn part<'a, T>(elements: &'a [T], rows: &Range<usize>, row: usize) -> &'a [T] {
    let (start, end) = (rows.start.checked_mul(row), rows.end.checked_mul(row));
    match (start, end) {
        (Some(start), Some(end)) => elements.get(start..end).unwrap_or_default(),
        _ => &[],
    }
}

/// Returns the rows of `row` elements each. Unlike `chunks_exact` it contains no division, so it has no panic at any
/// optimization level.
pub(super) fn rows_of<T>(mut elements: &[T], row: usize) -> impl Iterator<Item = &[T]> {
    core::iter::from_fn(move || {
        let (first, rest) = elements.split_at_checked(row)?;
        elements = rest;
        Some(first)
    })
}

/// Fails if integers cannot hold products of such rows.
pub(super) fn check_dim(dim: usize) -> Result<(), SearchError> {
    match dim {
        0 => Err(SearchError::NoColumns),
        1..=MAX_DIM => Ok(()),
        _ => Err(SearchError::TooWide { dim }),
    }
}

/// Fails if the elements do not fill whole rows.
pub(super) fn check_shape(len: usize, row: usize) -> Result<(), SearchError> {
    if len.is_multiple_of(row) {
        Ok(())
    } else {
        Err(SearchError::Shape { len, row })
    }
}

/// Fails if a table does not have one entry per row.
pub(super) fn check_table(expected: usize, found: usize) -> Result<(), SearchError> {
    if expected == found {
        Ok(())
    } else {
        Err(SearchError::Length { expected, found })
    }
}

/// Fails if a query has another length.
pub(super) fn check_query<T>(dim: usize, query: &[T]) -> Result<(), SearchError> {
    if query.len() == dim {
        Ok(())
    } else {
        Err(SearchError::QueryLength {
            expected: dim,
            found: query.len(),
        })
    }
}
