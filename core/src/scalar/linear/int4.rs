//! int4 rows, four in each 16-bit lane.

use crate::linear::{I8Sym, Matrix, Sums};

/// The sums of a matrix in [`Layout::Int4`](crate::linear::Layout::Int4); see [`super::sums`].
pub fn int4(matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let group_bytes = matrix.cols().div_ceil(8) * 16;
    let groups = matrix.bytes().chunks_exact(group_bytes.max(1));
    for group in groups {
        let mut sums = [0i32; 4];
        let halves = group.chunks_exact(2).filter_map(<[u8]>::first_chunk);
        for (&half, &x) in halves.zip(x.get()) {
            let codes = u16::from_le_bytes(half) ^ 0x8000;
            for (sum, shift) in sums.iter_mut().zip([0, 4, 8, 12]) {
                *sum += (i32::from((codes >> shift) & 15) - 8) * i32::from(x);
            }
        }
        out.narrow(&sums);
    }
}
