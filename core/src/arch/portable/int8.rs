//! Rows of int8 as in a file, four at a time.
//!
//! Contract: the sums of [`crate::arch::plain::linear::int8`]. Exact: a sum is at most 2¹⁴ · 2¹⁶ = 2³⁰.

use super::dot::dots;
use crate::linear::{I8Sym, Matrix, Sums};

/// See the module docs.
pub fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    // After the last row there are zeros, which receivers ignore.
    for rows in matrix
        .bytes()
        .chunks(matrix.cols().saturating_mul(4).max(1))
    {
        out.narrow(&dots(rows, x.get()));
    }
}
