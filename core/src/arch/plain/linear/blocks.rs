//! GGUF blocks as in a file.

use crate::block::{self, Format};
use crate::linear::{I8Sym, Layout, Matrix, Sums};

/// Computes the sums of a matrix in [`Layout::Block`]; see [`super::sums`].
pub fn blocks(format: Format, matrix: &Matrix<'_>, x: I8Sym<'_>, out: &mut impl Sums) {
    let row_bytes = Layout::Block(format).group_bytes(matrix.cols());
    let rows = matrix.bytes().chunks_exact(row_bytes.unwrap_or(1).max(1));
    for bytes in rows {
        // A matrix refuses scales that are not finite, and sums beyond 2⁶².
        let sum = block::dot_fixed(format, bytes, x.get());
        out.wide(&[sum.unwrap_or_default() as i64]);
    }
}
