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

use crate::linear::{I8Sym, Layout, Matrix};

/// Calls `emit` with each row and its exact sum, in order: Σ w·x, or Σ d·2²⁴·(Σ w·x) over blocks.
///
/// `x` holds an activation a column, else the sums mean nothing. Needs no scratch. O(rows · cols).
#[inline]
pub fn for_each_sum(matrix: &Matrix<'_>, x: I8Sym<'_>, emit: impl FnMut(usize, i64)) {
    match matrix.layout() {
        Layout::Int8 => int8(matrix, x, emit),
        Layout::Int8Pairs => int8_pairs(matrix, x, emit),
        Layout::Int4 => int4(matrix, x, emit),
        Layout::TernaryLanes => ternary_lanes(matrix, x, emit),
        Layout::Block(format) => blocks(format, matrix, x, emit),
    }
}
