//! Rows of int8 as they lie in a file.

use crate::linear::{I8Sym, Matrix};

/// The sums of a matrix in [`Layout::Int8`](crate::linear::Layout::Int8); see [`super::for_each_sum`].
///
/// Two rows at once, so that an activation is loaded once for both.
pub fn int8(matrix: &Matrix<'_>, x: I8Sym<'_>, mut emit: impl FnMut(usize, i64)) {
    let mut rows = matrix.bytes().chunks_exact(matrix.cols().max(1));
    let mut row = 0;
    while let Some(first) = rows.next() {
        let second = rows.next();
        let (a, b) = dots(first, second.unwrap_or(first), x.get());
        emit(row, a.into());
        if second.is_some() {
            emit(row + 1, b.into());
        }
        row += 2;
    }
}

/// The dot products of two rows; at most 2¹⁴ · 2¹⁶ = 2³⁰.
#[inline(never)]
fn dots(a: &[u8], b: &[u8], x: &[i8]) -> (i32, i32) {
    let mut sums = (0i32, 0i32);
    for ((&a, &b), &x) in a.iter().zip(b).zip(x) {
        sums.0 += i32::from(a as i8) * i32::from(x);
        sums.1 += i32::from(b as i8) * i32::from(x);
    }
    sums
}
