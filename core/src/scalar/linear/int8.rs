//! Rows of int8 as they lie in a file.

use crate::linear::{I8Sym, Matrix, Sums};

/// The sums of a matrix in [`Layout::Int8`](crate::linear::Layout::Int8); see [`super::sums`].
pub fn int8(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let rows = matrix.bytes().chunks_exact(matrix.cols().max(1));
    for weights in rows {
        out.narrow(&[dot_bytes(weights, x.get())]);
    }
}

/// As [`crate::scalar::dot`], of weights that lie as bytes.
fn dot_bytes(weights: &[u8], x: &[i8]) -> i32 {
    weights.iter().zip(x).fold(0i32, |sum, (&w, &x)| {
        sum.wrapping_add(i32::from(w as i8) * i32::from(x))
    })
}
