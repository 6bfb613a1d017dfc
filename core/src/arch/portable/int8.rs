//! Rows of int8 as they lie in a file, two at once.
//!
//! Contract: the sums of [`crate::scalar::linear::int8`].
//!
//! Exact: a sum is at most 2¹⁴ · 2¹⁶ = 2³⁰.

use super::dots::dots;
use crate::linear::{I8Sym, Matrix, Sums};

/// See the head of this file.
pub fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let mut rows = matrix.bytes().chunks_exact(matrix.cols().max(1));
    while let Some(first) = rows.next() {
        // The last of an odd number stands twice; its second sum is left out.
        let second = rows.next().unwrap_or(first);
        out.narrow(&two(first, second, x.get()));
    }
}

#[inline(never)]
fn two(a: &[u8], b: &[u8], x: &[i8]) -> [i32; 2] {
    dots(a, b, x, |weight| i32::from(weight as i8))
}
