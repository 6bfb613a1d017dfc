//! TQ1_0 as it lies in a file: a table of the 256 sums that a byte can stand for turns five products into two loads and half an
//! addition. Weights may lie at any address; fewer than four rows are left to the plain loops.
//!
//! For each block, byte by byte of it, a table gives Σ digit·activation of the five columns that the byte holds; every row adds
//! the entries that its bytes select. Two bytes share the words of a table ([`table`]), eight bytes are added in
//! one pass over the rows ([`rows`]), and a last pass adds the block's other four and multiplies by the row's scale. Rows go
//! through in tiles of at most [`TILE`], so that scratch does not grow beyond; a tile costs the tables once.
//!
//! Scratch: four tables of 256 words; for each row of a tile 16 bits for its sum in the block and 64 for its total.
//!
//! Why it is exact. An entry of one byte is 635 + Σ(d − 1)·x, d the digits 0..=2: 0..=1270. 48 of them and 1 stay
//! below 2¹⁶, so a row's sum in the block needs 16 bits unsigned, and two rows share a word without carries. In the last
//! pass entries are −7620 + Σ(d − 1)·x instead: 1 + 48·635 − 4·7620 − 1 = 0 is left of the offsets, where the last −1 is
//! the borrow that [`rows::add_last`] proves. The block's sum, |Σ| ≤ 256·127 < 2¹⁵, times 11 bits of scale is below 2²⁶; `SMLAL` shifts it
//! by up to 30 and adds it in 64 bits, counting in halves of the unit, where a [`Matrix`] keeps the total below 2⁶³.

mod rows;
mod table;

use super::batch::Batch;
use crate::linear::{I8Sym, Matrix, Sums, TABLE_ROWS};
use rows::Rows;
use table::TABLE;

/// Values and bytes of a block.
const VALUES: usize = 256;
const BYTES: usize = 54;
/// The most rows that are multiplied with the same tables.
const TILE: usize = TABLE_ROWS;

/// [`crate::scalar::linear::blocks`] of TQ1_0. `scratch` has [`Matrix::scratch_len`] words.
pub(super) fn sums(
    matrix: &Matrix<'_>,
    x: I8Sym<'_>,
    scratch: &mut [u32],
    out: &mut impl Sums,
) -> bool {
    let row_bytes = matrix.cols() / VALUES * BYTES;
    if matrix.rows() < 4 || row_bytes == 0 {
        return false;
    }
    let mut out = Batch::new(out);
    // A last tile of fewer than four rows takes some of the one before.
    let mut first = 0;
    while first < matrix.rows() {
        let rest = matrix.rows() - first;
        let skip = 4usize.saturating_sub(rest);
        let Some(bytes) = matrix.bytes().get((first - skip) * row_bytes..) else {
            return false;
        };
        let bytes = bytes.get(..TILE * row_bytes).unwrap_or(bytes);
        let Some(mut rows) = Rows::new(bytes, row_bytes, scratch) else {
            return false;
        };
        for (block, x) in x.get().chunks_exact(VALUES).enumerate() {
            add_block(&mut rows, block * BYTES, x);
        }
        rows.totals(|row, total| {
            if row >= skip {
                out.push(total);
            }
        });
        first += TILE.min(rest);
    }
    out.flush();
    true
}

/// Adds a block that begins `at` bytes into each row.
fn add_block(rows: &mut Rows<'_>, at: usize, x: &[i8]) {
    rows.clear_sums();
    for pass in 0..4 {
        for (pair, table) in rows.tables().chunks_exact_mut(TABLE).enumerate() {
            let columns = match 12 * pass + 2 * pair {
                byte @ 0..32 => (byte, 32, 5),
                byte => (160 - 32 + byte, 16, 5),
            };
            table::fill(x, columns, table);
        }
        rows.add_twelve(at + 12 * pass);
    }
    for (pair, table) in rows.tables().chunks_exact_mut(TABLE).take(2).enumerate() {
        table::fill(x, (240 + 2 * pair, 4, 4), table);
    }
    rows.add_last(at + 48);
}
