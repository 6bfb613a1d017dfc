//! An index of rows to search, which owns its memory.

use tercet_core::arch::plain::norm;
use tercet_core::engine::{SearchBase, SearchEngine};
use tercet_core::search::{Cosine, Dot, Hit, Int8Rows, MAX_DIM, Metric};

use super::Neighbour;
use crate::parallel::Threads;
use crate::parallel::each::{chunks, items_mut};
use crate::{Error, Quantizer};

/// Rows of floats held as int8 codes, one byte per value, to find the nearest ones to a query.
///
/// ```
/// use tercet_host::Index;
///
/// // Three rows of two values; the direction of the query is closest to that of the last row, then the first.
/// let index = Index::cosine(&[1.0, 0.1, -0.5, 2.0, 3.0, 0.2], 2)?;
/// let found = index.nearest(&[2.0, 0.1], 2)?;
/// assert_eq!((found[0].index, found[1].index), (2, 0));
/// assert!(found[0].score > 0.999);
/// # Ok::<(), tercet_host::Error>(())
/// ```
///
/// Queries become int8 codes too, and scores are exact integers until they are rounded once: every machine and any
/// number of threads gives the same bits. [`super::search`] also takes squared distances, f16, ternary and f32 rows,
/// and orders candidates again by their floats; its table says how many of the true ten nearest int8 finds.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    dims: usize,
    codes: Vec<i8>,
    /// Squared length of each row; none for dot products.
    norms: Vec<u32>,
    /// The value of a code of 1 in a row; 1 for cosines, which do not depend on it.
    scale: f64,
}

impl Index {
    /// Creates an index by cosine: each row has its own scale. `rows` holds rows of `dims` values one after another.
    /// O(n·d).
    ///
    /// # Errors
    /// [`Error::Options`] if there are no values, for rows of more than [`MAX_DIM`] values or of unequal length, and
    /// for a value that is not finite.
    pub fn cosine(rows: &[f32], dims: usize) -> Result<Self, Error> {
        let codes = Self::codes(rows, dims, Quantizer::int8().per_row(dims))?.0;
        let mut norms = vec![0; codes.len() / dims];
        (chunks(&codes, dims).zip(items_mut(&mut norms))).each(|_, (row, out)| *out = norm(row));
        Ok(Self {
            dims,
            codes,
            norms,
            scale: 1.0,
        })
    }

    /// Creates an index by dot product: all rows share one scale, so that their scores are comparable.
    ///
    /// # Errors
    /// As [`Index::cosine`].
    pub fn dot(rows: &[f32], dims: usize) -> Result<Self, Error> {
        let (codes, scale) = Self::codes(rows, dims, Quantizer::int8())?;
        Ok(Self {
            dims,
            codes,
            norms: Vec::new(),
            scale: f64::from(scale),
        })
    }

    fn codes(rows: &[f32], dims: usize, quantizer: Quantizer) -> Result<(Vec<i8>, f32), Error> {
        if dims == 0 || dims > MAX_DIM || !rows.len().is_multiple_of(dims) {
            return Err(Error::options(format!(
                "{} values are not rows of {dims}; rows have 1 to {MAX_DIM} values",
                rows.len()
            )));
        }
        let quantized = quantizer.quantize(rows).map_err(Error::options)?;
        let scale = quantized.scales().first().copied().unwrap_or(0.0);
        Ok((quantized.into_codes(), scale))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.codes.len() / self.dims
    }

    /// Returns false: an index has at least one row.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Number of values per row.
    pub const fn dims(&self) -> usize {
        self.dims
    }

    /// Returns the best `k` rows for one query, best first, and the lower index first among equal scores. O(n·d) on all
    /// threads.
    ///
    /// # Errors
    /// [`Error::Options`] unless the query has [`Index::dims`] values, all finite, and `k` is from 1 to [`Index::len`].
    pub fn nearest(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>, Error> {
        if query.len() != self.dims {
            return Err(Error::options(format!(
                "the query has {} values, but the rows have {}",
                query.len(),
                self.dims
            )));
        }
        Ok(self.nearest_all(query, k)?.pop().unwrap_or_default())
    }

    /// Returns the best `k` rows for each of several queries. `queries` holds one query after another.
    ///
    /// # Errors
    /// As [`Index::nearest`].
    pub fn nearest_all(&self, queries: &[f32], k: usize) -> Result<Vec<Vec<Neighbour>>, Error> {
        if k == 0 || k > self.len() {
            return Err(Error::options(format!(
                "k is {k}, but the index has {} rows",
                self.len()
            )));
        }
        if !queries.len().is_multiple_of(self.dims) {
            return Err(Error::options(format!(
                "{} values are not queries of {}",
                queries.len(),
                self.dims
            )));
        }
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let asked = Quantizer::int8().per_row(self.dims).quantize(queries);
        let asked = asked.map_err(Error::options)?;
        match self.norms.is_empty() {
            false => self.hits::<Cosine>(asked.codes(), k, |_| 1.0),
            true => self.hits::<Dot>(asked.codes(), k, |query| {
                f64::from(asked.scales()[query]) * self.scale
            }),
        }
    }

    fn hits<M: Metric>(
        &self,
        queries: &[i8],
        k: usize,
        unit: impl Fn(usize) -> f64,
    ) -> Result<Vec<Vec<Neighbour>>, Error> {
        let mut rows = Int8Rows::new(&self.codes, self.dims).map_err(Error::options)?;
        if M::INTEGER_NORMS {
            rows = rows.with_norms(&self.norms).map_err(Error::options)?;
        }
        let mut hits = vec![Hit::default(); queries.len() / self.dims * k];
        let mut threads = Threads::default();
        let mut base = threads.base(rows).map_err(Error::options)?;
        base.top_k_all::<M>(queries, k, &mut hits)
            .map_err(Error::options)?;
        let mut found = Vec::with_capacity(hits.len() / k);
        for (query, hits) in hits.chunks(k).enumerate() {
            let mut row = Vec::with_capacity(k);
            super::run::neighbours(hits, unit(query), &mut row);
            found.push(row);
        }
        Ok(found)
    }
}
