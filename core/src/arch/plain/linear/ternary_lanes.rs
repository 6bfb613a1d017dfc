//! Ternary rows, two per 16-bit lane, eight per group.

use crate::linear::{I8Sym, Layout, Matrix, Sums};

/// Computes the sums of a matrix in [`Layout::TernaryLanes`]; see [`super::sums`].
pub fn ternary_lanes(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let group_bytes = Layout::TernaryLanes.group_bytes(matrix.cols());
    let groups = matrix.bytes().chunks_exact(group_bytes.unwrap_or(1).max(1));
    for group in groups {
        let mut sums = [0i32; 8];
        let words = group.chunks_exact(4).filter_map(<[u8]>::first_chunk);
        for (&word, pair) in words.zip(x.get().chunks(2)) {
            let word = u32::from_le_bytes(word);
            for (half, &x) in pair.iter().enumerate() {
                let x = i32::from(x);
                for (j, sums) in sums.chunks_exact_mut(2).enumerate() {
                    let lane = (word.rotate_right(4 * j as u32) >> (16 * half)) as i16;
                    if let [a, b] = sums {
                        *a += (i32::from(lane & 3) - 1) * x;
                        *b += i32::from(lane >> 14) * x;
                    }
                }
            }
        }
        out.narrow(&sums);
    }
}
