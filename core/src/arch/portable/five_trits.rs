//! Five ternary digits per byte without blocks, two rows at a time, as in [`super::blocks`].

use super::blocks::{begin, digits, fields};
use crate::linear::five_trits::{BYTES, COLS, whole};
use crate::linear::{I8Sym, Matrix, Sums};

pub(super) fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let row_bytes = matrix.cols().div_ceil(COLS) * BYTES;
    for rows in matrix.bytes().chunks((2 * row_bytes).max(1)) {
        let (first, second) = rows.split_at_checked(row_bytes).unwrap_or_default();
        // The last of an odd number of rows is paired with itself; receivers ignore sums after the last row.
        let second = if second.is_empty() { first } else { second };
        out.narrow(&two_rows(first, second, x.get()));
    }
}

/// A group's sums fit 16 bits: 60·127 < 2¹⁵.
#[inline(never)]
fn two_rows(first: &[u8], second: &[u8], x: &[i8]) -> [i32; 2] {
    let mut sums = [0; 2];
    let (mut first, mut second) = (first.chunks_exact(BYTES), second.chunks_exact(BYTES));
    for x in x.chunks(COLS) {
        let (Some(first), Some(second)) = (first.next(), second.next()) else {
            break;
        };
        let mut padded = [0; COLS];
        let x = whole(x, &mut padded);
        let [a, b] = fields(digits::<BYTES>(begin(x), first.iter().zip(second), x));
        sums = [sums[0] + a, sums[1] + b];
    }
    sums
}
