//! Rows of int8 as they lie in a file, two at once.
//!
//! Contract: the sums of [`crate::scalar::linear::int8`]. Exact: a sum is at most 2¹⁴ · 2¹⁶ = 2³⁰.

use crate::linear::{I8Sym, Matrix, Sums};

/// See the head of this file.
pub fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let mut rows = matrix.bytes().chunks_exact(matrix.cols().max(1));
    while let Some(first) = rows.next() {
        // The last of an odd number stands twice; its second sum is left out.
        let second = rows.next().unwrap_or(first);
        out.narrow(&dots(first, second, x.get()));
    }
}

/// The dot products of two rows, four columns a round: loads then find their places by offsets, and pointers move a quarter as
/// often.
#[inline(never)]
fn dots(a: &[u8], b: &[u8], x: &[i8]) -> [i32; 2] {
    let mut sums = [0i32; 2];
    let mut add = |a: u8, b: u8, x: i8| {
        sums[0] += i32::from(a as i8) * i32::from(x);
        sums[1] += i32::from(b as i8) * i32::from(x);
    };
    let (fours, rest) = (a.chunks_exact(4), a.chunks_exact(4).remainder().len());
    for ((a, b), x) in fours.zip(b.chunks_exact(4)).zip(x.chunks_exact(4)) {
        if let (&[a0, a1, a2, a3], &[b0, b1, b2, b3], &[x0, x1, x2, x3]) = (a, b, x) {
            add(a0, b0, x0);
            add(a1, b1, x1);
            add(a2, b2, x2);
            add(a3, b3, x3);
        }
    }
    let rests = a.iter().rev().zip(b.iter().rev()).zip(x.iter().rev());
    for ((&a, &b), &x) in rests.take(rest) {
        add(a, b, x);
    }
    sums
}
