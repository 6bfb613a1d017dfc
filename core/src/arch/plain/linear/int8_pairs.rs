//! int8 rows packed in pairs of columns, four per group.

use crate::linear::{I8Sym, Matrix, Sums};

/// Computes the sums of a matrix in [`Layout::Int8Pairs`](crate::linear::Layout::Int8Pairs); see [`super::sums`].
pub fn int8_pairs(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let group_bytes = matrix.cols().div_ceil(8) * 32;
    let groups = matrix.bytes().chunks_exact(group_bytes.max(1));
    for group in groups {
        out.narrow(&dots(group, x.get()));
    }
}

/// Returns the dot products of a group's rows; at most 2⁷ · 127 · 2¹⁶ < 2³¹.
#[inline(never)]
fn dots(group: &[u8], x: &[i8]) -> [i32; 4] {
    let mut sums = [0; 4];
    let mut words = group.chunks_exact(16);
    let mut columns = x.chunks_exact(4);
    for (x, words) in columns.by_ref().zip(&mut words) {
        if let &[x0, x1, x2, x3] = x {
            add([x0, x1, x2, x3], words, &mut sums);
        }
    }
    if let (Some(words), rest @ [_, ..]) = (words.next(), columns.remainder()) {
        let mut x = [0; 4];
        for (x, &value) in x.iter_mut().zip(rest) {
            *x = value;
        }
        add(x, words, &mut sums);
    }
    sums
}

/// Adds four columns of each row.
#[inline(always)]
fn add([x0, x1, x2, x3]: [i8; 4], words: &[u8], sums: &mut [i32; 4]) {
    for (word, sum) in words.chunks_exact(4).zip(sums) {
        if let &[a, b, c, d] = word {
            *sum += pair(a, b, x0, x1) + pair(c, d, x2, x3);
        }
    }
}

/// Multiplies two columns: the low byte of the lane e + 256·o is e, and its high byte is o, less 1 if e is negative.
#[inline(always)]
fn pair(low: u8, high: u8, first: i8, second: i8) -> i32 {
    let even = i32::from(low as i8);
    let odd = i32::from(high as i8) - (even >> 31);
    even * i32::from(first) + odd * i32::from(second)
}
