//! Integer search: a set's kernels on rows, and the plain loops.

pub(in crate::simd) mod dots;
pub(in crate::simd) mod many;
pub(in crate::simd) mod passing;
mod ternary;

use tercet_core::arch::plain;
use tercet_core::search::Bar;

pub(crate) use ternary::TernaryQuery;

/// Rows in a block: as many as a mask has bits.
pub(crate) const BLOCK: usize = 64;

/// Dot products of a query with the rows of a block.
pub(crate) type Dots = [i32; BLOCK];
/// Squared lengths of the rows of a block.
pub(crate) type Norms = [u32; BLOCK];

/// The search functions for int8 and ternary rows, for one instruction set.
///
/// A block has up to [`BLOCK`] rows; places beyond them are not changed.
#[derive(Debug)]
pub(crate) struct Search {
    pub(in crate::simd) dots: unsafe fn(&[i8], &[i8], &mut Dots),
    pub(in crate::simd) dots_and_norms: unsafe fn(&[i8], &[i8], &mut Dots, &mut Norms),
    pub(in crate::simd) passing: unsafe fn(Bar, &Dots, &Norms) -> u64,
    pub(in crate::simd) many: Option<Many>,
    /// Returns the words of a packed block of rows with so many values.
    pub(in crate::simd) packed_len: fn(usize) -> usize,
    pub(in crate::simd) ternary_dots: unsafe fn(&TernaryQuery, &[u8], &mut Dots),
    pub(in crate::simd) ternary_norms: unsafe fn(&TernaryQuery, &[u8], &mut Norms),
}

/// Products of a block with many queries: its rows are packed once, in a form in which four bytes of a query are
/// multiplied with all of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Many {
    pub(in crate::simd) pack: unsafe fn(&[i8], usize, &mut [u32]),
    pub(in crate::simd) dots: unsafe fn(&[u32], Queries<'_>, &mut [Dots]),
}

/// Queries of one length, and their sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queries<'a> {
    /// The queries, one after another.
    pub(crate) values: &'a [i8],
    /// Values per query.
    pub(crate) dim: usize,
    /// Σ q of each query.
    pub(crate) sums: &'a [i32],
}

pub(in crate::simd) const SCALAR: Search = Search {
    dots,
    dots_and_norms,
    passing,
    many: None,
    packed_len: |_| 0,
    ternary_dots: ternary::dots,
    ternary_norms: ternary::norms,
};

fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    for (row, dot) in rows.chunks_exact(query.len()).zip(dots) {
        *dot = plain::dot(query, row);
    }
}

fn dots_and_norms(query: &[i8], rows: &[i8], dots: &mut Dots, norms: &mut Norms) {
    for ((row, dot), norm) in rows.chunks_exact(query.len()).zip(dots).zip(norms) {
        *dot = plain::dot(query, row);
        *norm = plain::norm(row);
    }
}

fn passing(bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let rows = dots.iter().zip(norms).enumerate();
    rows.fold(0, |mask, (row, (&dot, &norm))| {
        mask | u64::from(bar.admits(dot, norm)) << row
    })
}

impl Search {
    /// Computes the dot products of a query with up to [`BLOCK`] rows of its length, which is not 0.
    #[inline]
    pub(crate) fn dots(&self, query: &[i8], rows: &[i8], dots: &mut Dots) {
        check(query.len(), rows.len());
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.dots)(query, rows, dots) }
    }

    /// Does [`Search::dots`] and computes the squared lengths of the rows, in one pass.
    #[inline]
    pub(crate) fn dots_and_norms(
        &self,
        query: &[i8],
        rows: &[i8],
        dots: &mut Dots,
        norms: &mut Norms,
    ) {
        check(query.len(), rows.len());
        // SAFETY: as in `dots`.
        unsafe { (self.dots_and_norms)(query, rows, dots, norms) }
    }

    /// Returns a bit for each row of a block: at least those that the bar admits.
    #[inline]
    pub(crate) fn passing(&self, bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
        // SAFETY: as in `dots`.
        unsafe { (self.passing)(bar, dots, norms) }
    }

    /// Computes the dot products of a query with up to [`BLOCK`] packed ternary rows, without their magnitudes.
    #[inline]
    pub(crate) fn ternary_dots(&self, query: &TernaryQuery, rows: &[u8], dots: &mut Dots) {
        check(query.row_bytes(), rows.len());
        // SAFETY: as in `dots`.
        unsafe { (self.ternary_dots)(query, rows, dots) }
    }

    /// Computes the squared lengths of up to [`BLOCK`] packed ternary rows of a query's length, without their
    /// magnitudes.
    #[inline]
    pub(crate) fn ternary_norms(&self, query: &TernaryQuery, rows: &[u8], norms: &mut Norms) {
        check(query.row_bytes(), rows.len());
        // SAFETY: as in `dots`.
        unsafe { (self.ternary_norms)(query, rows, norms) }
    }

    /// True if there are kernels for many queries at once.
    pub(crate) fn takes_many(&self) -> bool {
        self.many.is_some()
    }

    /// Returns the words of a packed block of rows.
    pub(crate) fn packed_len(&self, dim: usize) -> usize {
        (self.packed_len)(dim)
    }

    /// Packs a block of up to [`BLOCK`] rows for [`Search::many_dots`]; the content of places beyond them does not
    /// matter.
    pub(crate) fn pack(&self, rows: &[i8], dim: usize, packed: &mut [u32]) {
        check(dim, rows.len());
        assert_eq!(packed.len(), self.packed_len(dim));
        if let Some(many) = self.many {
            // SAFETY: as in `dots`.
            unsafe { (many.pack)(rows, dim, packed) }
        }
    }

    /// Computes the dot products of queries with a packed block, a block of them for each query.
    pub(crate) fn many_dots(&self, packed: &[u32], queries: Queries<'_>, dots: &mut [Dots]) {
        assert_eq!(packed.len(), self.packed_len(queries.dim));
        assert_eq!(queries.values.len(), queries.dim * dots.len());
        assert_eq!(queries.sums.len(), dots.len());
        if let Some(many) = self.many {
            // SAFETY: as in `dots`.
            unsafe { (many.dots)(packed, queries, dots) }
        }
    }
}

/// Checks for whole rows, at most a block.
#[inline]
fn check(row: usize, rows: usize) {
    assert!(row > 0 && rows.is_multiple_of(row) && rows / row <= BLOCK);
}
