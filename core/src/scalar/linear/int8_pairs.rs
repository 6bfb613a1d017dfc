//! int8 rows packed in pairs of columns, four a group.

use crate::linear::{I8Sym, Matrix};

/// The sums of a matrix in [`Layout::Int8Pairs`](crate::linear::Layout::Int8Pairs); see [`super::for_each_sum`].
pub fn int8_pairs(matrix: &Matrix<'_>, x: I8Sym<'_>, mut emit: impl FnMut(usize, i64)) {
    let group_bytes = matrix.cols().div_ceil(8) * 32;
    let groups = matrix.bytes().chunks_exact(group_bytes.max(1));
    for (number, group) in groups.enumerate() {
        let mut sums = [0i32; 4];
        for (words, x) in group.chunks_exact(16).zip(x.get().chunks(4)) {
            for (word, sum) in words.chunks_exact(4).zip(&mut sums) {
                for (half, x) in word.chunks_exact(2).zip(x.chunks(2)) {
                    *sum += pair(half, x);
                }
            }
        }
        let rows = matrix.rows().saturating_sub(4 * number);
        for (row, &sum) in sums.iter().take(rows).enumerate() {
            emit(4 * number + row, i64::from(sum));
        }
    }
}

/// Two columns of a row, or the last one.
fn pair(half: &[u8], x: &[i8]) -> i32 {
    let half = half
        .first_chunk()
        .map_or(0, |&half| i32::from(i16::from_le_bytes(half)));
    let even = i32::from(half as i8);
    let odd = (half - even) >> 8;
    match *x {
        [first, second] => even * i32::from(first) + odd * i32::from(second),
        [first] => even * i32::from(first),
        _ => 0,
    }
}
