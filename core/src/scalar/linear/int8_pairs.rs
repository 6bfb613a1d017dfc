//! int8 rows packed in pairs of columns, four a group.

use crate::linear::{I8Sym, Matrix, Sums};

/// The sums of a matrix in [`Layout::Int8Pairs`](crate::linear::Layout::Int8Pairs); see [`super::sums`].
pub fn int8_pairs(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let group_bytes = matrix.cols().div_ceil(8) * 32;
    let groups = matrix.bytes().chunks_exact(group_bytes.max(1));
    for group in groups {
        let mut sums = [0i32; 4];
        for (words, x) in group.chunks_exact(16).zip(x.get().chunks(4)) {
            for (word, sum) in words.chunks_exact(4).zip(&mut sums) {
                for (half, x) in word.chunks_exact(2).zip(x.chunks(2)) {
                    *sum += pair(half, x);
                }
            }
        }
        out.narrow(&sums);
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
