//! Ternary rows, five codes per byte.

use crate::block::unpack_digits;
use crate::linear::five_trits::{BYTES, COLS};
use crate::linear::{I8Sym, Matrix, Sums};

/// Computes the sums of a matrix in [`Layout::FiveTrits`](crate::linear::Layout::FiveTrits); see [`super::sums`].
pub fn five_trits(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let row_bytes = matrix.cols().div_ceil(COLS) * BYTES;
    for row in matrix.bytes().chunks_exact(row_bytes.max(1)) {
        out.narrow(&[dot(row, x.get())]);
    }
}

/// Returns the dot product of a row; at most 127 · 2¹⁶ < 2²³.
#[inline(never)]
fn dot(row: &[u8], x: &[i8]) -> i32 {
    let mut sum = 0;
    let mut groups = row.chunks_exact(BYTES);
    for x in x.chunks(COLS) {
        let Some(group) = groups.next() else { break };
        let mut codes = [0; COLS];
        unpack_digits::<BYTES>(group, &mut codes);
        let products = codes
            .iter()
            .zip(x)
            .map(|(&code, &x)| i32::from(code) * i32::from(x));
        sum += products.sum::<i32>();
    }
    sum
}
