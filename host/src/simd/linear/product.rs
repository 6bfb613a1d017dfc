//! A layer's rows times activations, with the kernels of a set or core's loops.

use tercet_core::linear::{self, I8Sym, Layout, Matrix, Sums};

use super::{Activations, CHUNK, Panels, Rows, Strips};
use crate::simd::Backend;

/// Minimum number of rows of activations for which packing weights pays off.
const FEW: usize = 5;
/// Minimum number of sums for which packing both sides pays off: a tile has room for 32 rows of each.
const FEW_SUMS: usize = 40;

/// The product of some layers' rows with one vector of activations, on one backend.
pub(crate) struct Product<'a> {
    x: I8Sym<'a>,
    kernel: Option<(Rows, Activations)>,
}

impl Backend {
    /// Prepares a product of rows in a matrix' layout with activations, one for each of its columns. O(cols).
    pub(crate) fn product<'a>(self, matrix: &Matrix<'_>, x: I8Sym<'a>) -> Product<'a> {
        let kernel = (self.kernels().linear().vector)(matrix.layout()).map(|vector| {
            let mut activations = Activations::new();
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (vector.prepare)(x.get(), &mut activations) };
            (vector.rows, activations)
        });
        Product { x, kernel }
    }

    /// Packs activations to be multiplied in tiles with matrices of this one's layout and columns, and makes room for
    /// their weights. `None` if the set has no tiles, or they do not pay off for few rows of activations. Up to `alone`
    /// activations are packed on the calling thread. O(rows · cols).
    pub(crate) fn strips(self, matrix: &Matrix<'_>, x: I8Sym<'_>, alone: usize) -> Option<Strips> {
        let tiles = self.kernels().linear().tiles?;
        // Pairs can have a weight of 128, which has no code.
        let has_codes = matrix.layout() != Layout::Int8Pairs;
        let rows = x.len() / matrix.cols().max(1);
        let many = rows >= FEW && rows.saturating_mul(matrix.rows()) >= FEW_SUMS;
        (many && has_codes).then(|| Strips::new(matrix, x, tiles, alone))
    }

    /// Returns room for a tile's weights; `None` if the set has no tiles.
    pub(crate) fn panels(self) -> Option<Panels> {
        self.kernels().linear().tiles.map(Panels::new)
    }
}

impl Product<'_> {
    /// Passes to `out` the exact sums of a matrix's rows, as [`linear::row_sums`] does. The matrix has the columns and
    /// the layout that the product was made for.
    pub(crate) fn sums(&self, matrix: &Matrix<'_>, out: &mut impl Sums) {
        let Some((rows, activations)) = &self.kernel else {
            let mut scratch = vec![0; matrix.scratch_len()];
            // The lengths were checked.
            let done = linear::row_sums(matrix, self.x, &mut scratch, out);
            return debug_assert_eq!(done, Ok(()));
        };
        let layout = matrix.layout();
        let group = layout.group_bytes(matrix.cols()).unwrap_or(1);
        let parts = matrix
            .bytes()
            .chunks((CHUNK / layout.group_rows() * group).max(1));
        let mut left = matrix.rows();
        for bytes in parts {
            let count = left.min(CHUNK);
            left -= count;
            match rows {
                Rows::Narrow(kernel) => {
                    let mut sums = [0; CHUNK];
                    // SAFETY: as in `product`.
                    unsafe { kernel(bytes, activations, &mut sums[..count]) };
                    out.narrow(&sums[..count]);
                }
                Rows::Wide(kernel) => {
                    let mut sums = [0; CHUNK];
                    // SAFETY: as in `product`.
                    unsafe { kernel(bytes, activations, &mut sums[..count]) };
                    out.wide(&sums[..count]);
                }
            }
        }
    }
}
