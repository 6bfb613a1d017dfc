//! int4 rows, four per 16-bit lane.

use crate::linear::{I8Sym, Matrix, Sums};

/// Computes the sums of a matrix in [`Layout::Int4`](crate::linear::Layout::Int4); see [`super::sums`].
///
/// A column of four rows is two bytes, a + 16·b and c + 16·d, with 8 added to the weights a, b and c, and d in two's
/// complement. So Σ (a + 16·b)·x and Σ a·x give both rows, with one mask for two products.
pub fn int4(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let x = x.get();
    let offset = 8 * x.iter().map(|&x| i32::from(x)).sum::<i32>();
    let group_bytes = matrix.cols().div_ceil(8) * 16;
    let groups = matrix.bytes().chunks_exact(group_bytes.max(1));
    for group in groups {
        let [ab, a, cd, c] = dots(group, x);
        // Exact: |ab| ≤ 255 · 127 · 2¹⁶ < 2³¹, and the other sums are smaller.
        out.narrow(&[
            a - offset,
            ((ab - a) >> 4) - offset,
            c - offset,
            (cd - c) >> 4,
        ]);
    }
}

/// Returns Σ (a + 16·b)·x, Σ a·x, Σ (c + 16·d)·x, Σ c·x.
#[inline(never)]
fn dots(group: &[u8], x: &[i8]) -> [i32; 4] {
    let mut sums = [0i32; 4];
    for (lane, &x) in group.chunks_exact(2).zip(x) {
        if let &[low, high] = lane {
            let x = i32::from(x);
            sums[0] += i32::from(low) * x;
            sums[1] += i32::from(low & 15) * x;
            sums[2] += i32::from(high as i8) * x;
            sums[3] += i32::from(high & 15) * x;
        }
    }
    sums
}
