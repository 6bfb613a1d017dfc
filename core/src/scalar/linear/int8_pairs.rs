//! int8 rows packed in pairs of columns, four a group.

use crate::linear::{I8Sym, Matrix};

/// The sums of a matrix in [`Layout::Int8Pairs`](crate::linear::Layout::Int8Pairs); see [`super::for_each_sum`].
pub fn int8_pairs(matrix: &Matrix<'_>, x: I8Sym<'_>, mut emit: impl FnMut(usize, i64)) {
    let group_bytes = matrix.cols().div_ceil(8) * 32;
    let groups = matrix.bytes().chunks_exact(group_bytes.max(1));
    for (number, group) in groups.enumerate() {
        let rows = 4 * number..matrix.rows();
        for (row, words) in rows.zip([
            group.get(..),
            group.get(4..),
            group.get(8..),
            group.get(12..),
        ]) {
            emit(row, dot(words.unwrap_or_default(), x.get()).into());
        }
    }
}

/// The dot product of a row whose words are every fourth one, from the first on; at most 2⁷ · 127 · 2¹⁶ < 2³¹.
#[inline(never)]
fn dot(words: &[u8], x: &[i8]) -> i32 {
    let mut words = words.chunks(16);
    let mut columns = x.chunks_exact(4);
    let mut sum = 0;
    for (x, word) in columns.by_ref().zip(&mut words) {
        if let (&[x0, x1, x2, x3], &[a, b, c, d, ..]) = (x, word) {
            sum += pair(a, b, x0, x1) + pair(c, d, x2, x3);
        }
    }
    if let Some(&[a, b, c, d, ..]) = words.next() {
        // Missing columns count as activations of 0.
        let mut rest = columns.remainder().iter().copied();
        let mut next = || rest.next().unwrap_or(0);
        let (x0, x1, x2) = (next(), next(), next());
        sum += pair(a, b, x0, x1) + pair(c, d, x2, 0);
    }
    sum
}

/// Two columns: the lane e + 256·o has e for its low byte, and o, less 1 where e is negative, for its high one.
#[inline(always)]
fn pair(low: u8, high: u8, first: i8, second: i8) -> i32 {
    let even = i32::from(low as i8);
    let odd = i32::from(high as i8) - (even >> 31);
    even * i32::from(first) + odd * i32::from(second)
}
