//! Rows of ternary codes, two bits each.

use core::ops::Range;

use super::int8::{check_dim, check_query, check_shape, check_table, part, rows_of};
use super::{Hit, Metric, Rows, SearchError, Visitor};
use crate::arch::plain::{norm, ternary_dot};

/// Ternary rows with two bits per value and one magnitude per row.
///
/// A row is equivalent to an int8 row of −m, 0 and m, with a quarter of its bytes: scores and bounds are
/// bit-identical to those of [`super::Int8Rows`]. The magnitude m converts rows of different scales to the grid of
/// the queries. It has no influence on cosines.
///
/// A row of d values takes S = ⌈d / 4⌉ bytes. Byte i holds the values i, i + S, i + 2 S and i + 3 S as `code + 1` in
/// bits 0–1, 2–3, 4–5 and 6–7. So each of four runs of values lies in one pair of bits of successive bytes. This is
/// the order of Hugging Face's BitNet ([`crate::block::bitnet_hf`]), with a row's values in place of a matrix's rows.
/// Bits beyond the row's end are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TernaryRows<'a> {
    bytes: &'a [u8],
    dim: usize,
    magnitudes: Option<&'a [u8]>,
    norms: Option<&'a [u32]>,
}

impl<'a> TernaryRows<'a> {
    /// Borrows packed rows of `dim` values with magnitude 1, after one pass that checks them.
    ///
    /// # Errors
    /// [`SearchError::NoColumns`]; [`SearchError::TooWide`] above [`super::MAX_DIM`]; [`SearchError::Shape`] if the
    /// bytes do not fill whole rows; [`SearchError::CodeRange`] for the bits 3.
    pub fn new(bytes: &'a [u8], dim: usize) -> Result<Self, SearchError> {
        check_dim(dim)?;
        let row_bytes = Self::row_bytes(dim);
        check_shape(bytes.len(), row_bytes)?;
        for (row, bytes) in rows_of(bytes, row_bytes).enumerate() {
            let mut codes = codes(bytes, dim);
            if let Some(column) = codes.position(|code| code == 2) {
                return Err(SearchError::CodeRange { row, column });
            }
        }
        Ok(Self {
            bytes,
            dim,
            magnitudes: None,
            norms: None,
        })
    }

    /// Returns the number of bytes of a packed row: ⌈dim / 4⌉.
    pub const fn row_bytes(dim: usize) -> usize {
        dim.div_ceil(4)
    }

    /// Packs the codes of one row, each −1, 0 or 1.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless `out` has [`TernaryRows::row_bytes`]; [`SearchError::CodeRange`], as row 0, for
    /// any other code. The content of `out` is unspecified then.
    pub fn pack(codes: &[i8], out: &mut [u8]) -> Result<(), SearchError> {
        let row_bytes = Self::row_bytes(codes.len());
        check_table(row_bytes, out.len())?;
        // Bits beyond the row's end are those of code 0.
        out.fill(0b0101_0101);
        let mut start = 0;
        for (run, shift) in codes.chunks(row_bytes.max(1)).zip([0, 2, 4, 6]) {
            for (at, (byte, &code)) in out.iter_mut().zip(run).enumerate() {
                if !(-1..=1).contains(&code) {
                    let column = start + at;
                    return Err(SearchError::CodeRange { row: 0, column });
                }
                *byte = (*byte & !(3 << shift)) | (((code + 1) as u8) << shift);
            }
            start += row_bytes;
        }
        Ok(())
    }

    /// Sets each row's magnitude.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless there is one per row; [`SearchError::Magnitude`] for one above 127.
    pub fn with_magnitudes(mut self, magnitudes: &'a [u8]) -> Result<Self, SearchError> {
        check_table(self.len(), magnitudes.len())?;
        for (row, &magnitude) in magnitudes.iter().enumerate() {
            if magnitude > 127 {
                return Err(SearchError::Magnitude { row, magnitude });
            }
        }
        self.magnitudes = Some(magnitudes);
        // The previous norms belong to other magnitudes.
        self.norms = None;
        Ok(self)
    }

    /// Like [`super::Int8Rows::with_norms`]. Set the magnitudes first, because the lengths depend on them.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless there is one per row.
    pub fn with_norms(mut self, norms: &'a [u32]) -> Result<Self, SearchError> {
        check_table(self.len(), norms.len())?;
        self.norms = Some(norms);
        Ok(self)
    }

    /// Writes the squared length of each row: magnitude² times the number of codes that are not 0.
    ///
    /// # Errors
    /// [`SearchError::Length`] unless `out` holds one per row.
    pub fn write_norms(&self, out: &mut [u32]) -> Result<(), SearchError> {
        check_table(self.len(), out.len())?;
        let rows = rows_of(self.bytes, Self::row_bytes(self.dim));
        for ((out, row), magnitude) in out.iter_mut().zip(rows).zip(self.magnitudes_from(0)) {
            *out = self.row_norm(row, magnitude);
        }
        Ok(())
    }

    /// Returns the packed rows.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the rows' squared lengths, if they were given.
    pub fn norms(&self) -> Option<&'a [u32]> {
        self.norms
    }

    /// Returns the rows' magnitudes, if they were given; otherwise each is 1.
    pub fn magnitudes(&self) -> Option<&'a [u8]> {
        self.magnitudes
    }

    /// Returns the magnitudes from a row on; an endless sequence of 1 if none were given.
    fn magnitudes_from(&self, first: usize) -> impl Iterator<Item = u8> + use<'a> {
        let given = self.magnitudes.unwrap_or_default().get(first..);
        let given = given.unwrap_or_default().iter().copied();
        given.chain(core::iter::repeat(1))
    }

    fn row_norm(&self, row: &[u8], magnitude: u8) -> u32 {
        let (mut coded, mut left) = (0u32, self.dim);
        for shift in [0, 2, 4, 6] {
            let run = row.iter().take(left);
            // Code 0 has the bits 1.
            coded += run
                .map(|byte| u32::from((byte >> shift) & 3 != 1))
                .sum::<u32>();
            left = left.saturating_sub(row.len());
        }
        // At most 43,690 · 127² < 2³⁰.
        coded * u32::from(magnitude) * u32::from(magnitude)
    }
}

/// Returns the codes of a packed row, in order; the bits 3 become 2.
fn codes(row: &[u8], dim: usize) -> impl Iterator<Item = i8> {
    let runs = [0, 2, 4, 6].into_iter();
    let all = runs.flat_map(|shift| row.iter().map(move |byte| ((byte >> shift) & 3) as i8 - 1));
    all.take(dim)
}

impl Rows for TernaryRows<'_> {
    type Query = i8;
    type Score<M: Metric> = M::Integer;

    fn len(&self) -> usize {
        self.bytes.len() / Self::row_bytes(self.dim).max(1)
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
        let row_bytes = Self::row_bytes(self.dim);
        let bytes = part(self.bytes, &rows, row_bytes);
        let norms = self.norms.and_then(|norms| norms.get(rows.clone()));
        let mut norms = norms.map(|norms| norms.iter());
        let magnitudes = self.magnitudes_from(rows.start);
        for ((index, row), magnitude) in rows.zip(rows_of(bytes, row_bytes)).zip(magnitudes) {
            let known = norms.as_mut().and_then(Iterator::next);
            let row_norm = match known {
                _ if !M::INTEGER_NORMS => 0,
                Some(&known) => known,
                None => self.row_norm(row, magnitude),
            };
            // At most 43,690 · 128 · 127 < 2³⁰.
            let dot = ternary_dot(row, query).wrapping_mul(i32::from(magnitude));
            each(index, M::integer(dot, query_norm, row_norm));
        }
    }

    #[inline]
    fn visit<M: Metric, V: Visitor>(
        &self,
        queries: &[i8],
        hits: &mut [Hit<M::Integer>],
        visitor: &mut V,
    ) -> V::Output {
        visitor.ternary::<M>(*self, queries, hits)
    }
}
