//! A layer's rows times activations, by the kernels of a set or core's loops.

use tercet_core::linear::{self, I8Sym, Layer, Layout, Matrix, Sums};

use super::{Activations, CHUNK, HalfRows, Panels, Rows, Strips};
use crate::simd::Backend;

/// The fewest rows of activations that are worth packing weights for.
const FEW: usize = 5;
/// The fewest sums that are worth packing both sides for: a tile has room for 32 rows of each.
const FEW_SUMS: usize = 40;

/// The product of some layers' rows with one vector of activations, by one backend.
pub(crate) struct Product<'a> {
    x: I8Sym<'a>,
    kernel: Option<(Rows, Activations)>,
}

/// The product of rows of blocks with one vector of activations of 16 bits.
pub(crate) struct HalfProduct {
    rows: HalfRows,
    x: Vec<i16>,
    /// Σx of each 32.
    sums: Vec<f64>,
}

impl Backend {
    /// Makes ready to multiply rows that lie as a matrix's do by activations of 16 bits, of which there are both planes
    /// ([`planes`](tercet_core::quant::activations::planes)); none where the set has no kernel for it, or sums may need more than f64 has. O(cols).
    pub(crate) fn half_product(
        self,
        matrix: &Matrix<'_>,
        high: I8Sym<'_>,
        low: I8Sym<'_>,
    ) -> Option<HalfProduct> {
        let Layout::Block(format) = matrix.layout() else {
            return None;
        };
        let rows = (self.kernels().linear.halves)(format)?;
        if matrix.wide_sum_bits() > f64::MANTISSA_DIGITS {
            return None;
        }
        let planes = high.get().iter().zip(low.get());
        let x: Vec<_> = planes
            .map(|(&high, &low)| 255 * i16::from(high) + i16::from(low))
            .collect();
        let sums = x
            .chunks(32)
            .map(|x| f64::from(x.iter().map(|&x| i32::from(x)).sum::<i32>()))
            .collect();
        Some(HalfProduct { rows, x, sums })
    }

    /// Makes ready to multiply rows that lie as a matrix's do by activations, one for each of its columns. O(cols).
    pub(crate) fn product<'a>(self, matrix: &Matrix<'_>, x: I8Sym<'a>) -> Product<'a> {
        let kernel = (self.kernels().linear.vector)(matrix.layout()).map(|vector| {
            let mut activations = Activations::new();
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (vector.prepare)(x.get(), &mut activations) };
            (vector.rows, activations)
        });
        Product { x, kernel }
    }

    /// Activations packed to be multiplied in tiles with matrices of this one's layout and columns, and room for their weights; none
    /// where the set has no tiles, or they do not pay: for a few rows of activations. Up to `alone` activations are packed on the calling
    /// thread. O(rows · cols).
    pub(crate) fn strips(self, matrix: &Matrix<'_>, x: I8Sym<'_>, alone: usize) -> Option<Strips> {
        let tiles = self.kernels().linear.tiles?;
        // Pairs can hold a weight of 128, which has no code.
        let has_codes = matrix.layout() != Layout::Int8Pairs;
        let rows = x.len() / matrix.cols().max(1);
        let many = rows >= FEW && rows.saturating_mul(matrix.rows()) >= FEW_SUMS;
        (many && has_codes).then(|| Strips::new(matrix, x, tiles.order, alone))
    }

    /// Room for a tile's weights; none where the set has no tiles.
    pub(crate) fn panels(self) -> Option<Panels> {
        self.kernels().linear.tiles.map(Panels::new)
    }
}

impl HalfProduct {
    /// Gives `out` what a layer's rows are worth, as [`Layer::value`] has it. The layer has the columns and the layout that the product was made for.
    pub(crate) fn values(&self, layer: &Layer<'_>, x_scale: f32, out: &mut [f32]) {
        let weights = layer.weights();
        let row = weights.layout().group_bytes(weights.cols()).unwrap_or(1);
        let parts = weights.bytes().chunks(CHUNK * row);
        for (part, (bytes, out)) in parts.zip(out.chunks_mut(CHUNK)).enumerate() {
            let mut sums = [0.0; CHUNK];
            let sums = &mut sums[..out.len()];
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (self.rows)(bytes, &self.x, &self.sums, sums) };
            for (row, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
                // An integer below 2⁵³ in magnitude.
                let sum = (*sum * 16_777_216.0) as i64;
                *out = layer.value(CHUNK * part + row, sum, x_scale);
            }
        }
    }
}

impl Product<'_> {
    /// Gives `out` the exact sums of a matrix's rows, as [`linear::row_sums`] does. The matrix has the columns and the layout that
    /// the product was made for.
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
