//! Rows of int8 as in a file.

use crate::linear::{I8Sym, Matrix, Sums};

/// Computes the sums of a matrix in [`Layout::Int8`](crate::linear::Layout::Int8); see [`super::sums`].
///
/// Two rows at once, so that an activation is loaded once for both.
pub fn int8(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let mut rows = matrix.bytes().chunks_exact(matrix.cols().max(1));
    while let Some(first) = rows.next() {
        // The last of an odd number of rows is used twice; the second sum is ignored.
        let second = rows.next().unwrap_or(first);
        out.narrow(&dots(first, second, x.get()));
    }
}

/// Returns the dot products of two rows; at most 2¹⁴ · 2¹⁶ = 2³⁰.
#[inline(never)]
fn dots(a: &[u8], b: &[u8], x: &[i8]) -> [i32; 2] {
    let mut sums = [0i32; 2];
    for ((&a, &b), &x) in a.iter().zip(b).zip(x) {
        sums[0] += i32::from(a as i8) * i32::from(x);
        sums[1] += i32::from(b as i8) * i32::from(x);
    }
    sums
}
