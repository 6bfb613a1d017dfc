//! GGUF blocks as they lie in a file.

use crate::block::{self, Format};
use crate::linear::{I8Sym, Layout, Matrix};

/// The sums of a matrix in [`Layout::Block`]; see [`super::for_each_sum`].
pub fn blocks(format: Format, matrix: &Matrix<'_>, x: I8Sym<'_>, mut emit: impl FnMut(usize, i64)) {
    let row_bytes = Layout::Block(format).group_bytes(matrix.cols());
    let rows = matrix.bytes().chunks_exact(row_bytes.unwrap_or(1).max(1));
    for (row, bytes) in rows.enumerate() {
        // A matrix refuses scales that are not finite and sums beyond 2⁶².
        let sum = block::dot_fixed(format, bytes, x.get());
        emit(row, sum.unwrap_or_default() as i64);
    }
}
