//! Row sums of every layout by plain loops: what kernels are compared with.

mod blocks;
mod int4;
mod int8;
mod int8_pairs;
mod ternary_lanes;

pub use blocks::blocks;
pub use int4::int4;
pub use int8::int8;
pub use int8_pairs::int8_pairs;
pub use ternary_lanes::ternary_lanes;

use crate::linear::{Each, I8Sym, Layout, Matrix, Sums};

/// Gives `out` the exact sums of the rows, in order: Σ w·x, or Σ d·2²⁴·(Σ w·x) over blocks.
///
/// `x` holds an activation a column, else the sums mean nothing. Needs no scratch. O(rows · cols).
#[inline]
pub fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    match matrix.layout() {
        Layout::Int8 => int8(matrix, x, out),
        Layout::Int8Pairs => int8_pairs(matrix, x, out),
        Layout::Int4 => int4(matrix, x, out),
        Layout::TernaryLanes => ternary_lanes(matrix, x, out),
        Layout::Block(format) => blocks(format, matrix, x, out),
    }
}

/// Calls `each` with each row and its sum, as [`sums`] finds them.
#[inline]
pub fn for_each_sum(matrix: &Matrix<'_>, x: I8Sym<'_>, each: impl FnMut(usize, i64)) {
    let rows = 0..matrix.rows();
    sums(matrix, x, &mut Each { rows, each });
}
