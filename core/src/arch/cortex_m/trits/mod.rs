//! Five ternary digits per byte: a table of the 256 sums that a byte can represent replaces five products by two
//! loads and half an addition.
//!
//! For each byte of a row, a table gives Σ (d − 1)·x over the digits d and the activations x of the five columns in
//! the byte. Every row adds the entries that its bytes select. Two neighbouring bytes share the words of a table
//! ([`table`]), and one pass over the rows adds twelve bytes ([`rows`]). Rows are processed in tiles of at most
//! [`TABLE_ROWS`], so that scratch does not grow further; each tile computes the tables once.
//!
//! Scratch: six tables of 256 words; for each row of a tile two words for its sums, and the words of its total.
//!
//! Proof that sums are exact: a table's word is a + 2¹⁶·b modulo 2³², with a and b the entries of the even and the
//! odd byte. A row adds the words of its even bytes to [0], and those of its odd bytes to [2¹⁵]: S + 2¹⁶·(an unused
//! number), and 2¹⁵ + (an unused number) + 2¹⁶·S. An entry is at most 5·127 = 635. Over [`BYTES`] bytes, 48 even and
//! 48 odd ones, every such sum is at most 48·635 = 30,480 < 2¹⁵. So the low half of the first, read as signed, is the
//! sum of even bytes. The part of the second below its high half stays within 0..2¹⁶, so that half is the sum of odd
//! bytes.

mod rows;
mod table;

use crate::linear::{Matrix, TABLE_ROWS};
pub(super) use rows::Rows;
#[cfg(not(tercet_mve))]
pub(super) use rows::{add_four, add_twelve, begin_twelve};
pub(super) use table::{TABLE, fill};

/// Largest number of bytes of a row whose sums fit.
pub(super) const BYTES: usize = 96;

/// Calls `each` with the rows of each tile, and with the number of them that were in the previous tile: a last tile
/// of fewer than four rows includes some of it. A total has `words` words. Returns false and does nothing for fewer
/// than four rows or too little scratch.
#[inline]
pub(super) fn for_each_tile(
    matrix: &Matrix<'_>,
    row_bytes: usize,
    words: usize,
    scratch: &mut [u32],
    mut each: impl FnMut(Rows<'_>, usize),
) -> bool {
    if matrix.rows() < 4 {
        return false;
    }
    let mut first = 0;
    while first < matrix.rows() {
        let rest = matrix.rows() - first;
        let skip = 4usize.saturating_sub(rest);
        let Some(bytes) = matrix.bytes().get((first - skip) * row_bytes..) else {
            return false;
        };
        let bytes = bytes.get(..TABLE_ROWS * row_bytes).unwrap_or(bytes);
        // This fails at the first tile, which is the largest, or never.
        let Some(rows) = Rows::new(bytes, row_bytes, words, scratch) else {
            return false;
        };
        each(rows, skip);
        first += TABLE_ROWS.min(rest);
    }
    true
}
