//! Layers of blocks times 16-bit activations, with the kernels of a set that process these as a whole.

use tercet_core::linear::{I8Sym, Layer, Layout};

use super::half_tiles::{HalfTiles, Panel};
use super::{CHUNK, HalfRows};
use crate::simd::Backend;

/// 32 activations.
pub(in crate::simd) type Values = [i16; 32];

/// The inverse of the unit of a sum: sums of blocks are whole numbers of 2⁻²⁴.
const UNITS: f64 = 16_777_216.0;

/// The product of rows of blocks with rows of 16-bit activations.
pub(crate) struct HalfProduct {
    rows: HalfRows,
    tiles: Option<HalfTiles>,
    /// Rows, one after another.
    x: Vec<Values>,
    /// Σx of every 32 values.
    sums: Vec<f64>,
    /// Blocks per row.
    blocks: usize,
}

impl Backend {
    /// Prepares a product of rows in a layer's layout with rows of 16-bit activations, given as the high planes and
    /// then the low ones ([`planes`](tercet_core::quant::activations::planes)). `None` if the set has no kernel for it,
    /// sums may need more bits than f64 has, or there is a bias. O(rows · cols).
    pub(crate) fn half_product(self, layer: &Layer<'_>, x: I8Sym<'_>) -> Option<HalfProduct> {
        let matrix = layer.weights();
        let Layout::Block(format) = matrix.layout() else {
            return None;
        };
        let linear = self.kernels().linear;
        let rows = (linear.halves)(format)?;
        if layer.has_bias() || matrix.wide_sum_bits() > f64::MANTISSA_DIGITS {
            return None;
        }
        let (high, low) = x.get().split_at(x.len() / 2);
        let planes = high.as_chunks::<32>().0.iter().zip(low.as_chunks::<32>().0);
        let mut all = vec![[0; 32]; high.len() / 32];
        for (x, (high, low)) in all.iter_mut().zip(planes) {
            for ((x, &high), &low) in x.iter_mut().zip(high).zip(low) {
                *x = 255 * i16::from(high) + i16::from(low);
            }
        }
        let sum = |x: &Values| f64::from(x.iter().map(|&x| i32::from(x)).sum::<i32>());
        Some(HalfProduct {
            rows,
            tiles: (linear.half_tiles)(format),
            sums: all.iter().map(sum).collect(),
            x: all,
            blocks: matrix.cols() / 32,
        })
    }
}

impl HalfProduct {
    /// Returns the number of rows of activations.
    pub(crate) const fn rows(&self) -> usize {
        self.x.len() / self.blocks
    }

    /// Returns the blocks per row.
    pub(super) const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the activations of a row for a block.
    #[inline(always)]
    pub(super) fn values(&self, row: usize, block: usize) -> &Values {
        &self.x[row * self.blocks + block]
    }

    /// Returns their sum.
    #[inline(always)]
    pub(super) fn sum(&self, row: usize, block: usize) -> f64 {
        self.sums[row * self.blocks + block]
    }

    /// True if [`HalfProduct::tiles`] pays off: from some rows of activations on.
    pub(crate) const fn has_tiles(&self) -> bool {
        self.tiles.is_some() && self.rows() >= FEW
    }

    /// Writes to `out` the values of a layer's rows times a row of activations, as in [`Layer::value`]. The layer has
    /// the columns and the layout that the product was made for.
    pub(crate) fn row(&self, layer: &Layer<'_>, x: usize, x_scale: f32, out: &mut [f32]) {
        let at = x * self.blocks;
        let (x, of_x) = (
            &self.x[at..][..self.blocks],
            &self.sums[at..][..self.blocks],
        );
        let weights = layer.weights();
        let row = weights.layout().group_bytes(weights.cols()).unwrap_or(1);
        let parts = weights.bytes().chunks(CHUNK * row);
        for (part, (bytes, out)) in parts.zip(out.chunks_mut(CHUNK)).enumerate() {
            let mut sums = [0.0; CHUNK];
            let sums = &mut sums[..out.len()];
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { (self.rows)(bytes, x, of_x, sums) };
            for (row, (out, &mut sum)) in out.iter_mut().zip(sums).enumerate() {
                *out = layer.value_of_rounded(CHUNK * part + row, (sum * UNITS) as f32, x_scale);
            }
        }
    }

    /// Calls `give` with the number of each row of activations, the first of some rows of a layer, and the values of
    /// these; the layer is as in [`HalfProduct::row`]. It is not called if there are no tiles.
    pub(crate) fn tiles(
        &self,
        layer: &Layer<'_>,
        x_scales: &[f32],
        room: &mut Panel,
        mut give: impl FnMut(usize, usize, &[f32]),
    ) {
        let Some(tiles) = self.tiles else { return };
        let weights = layer.weights();
        let row = weights.layout().group_bytes(weights.cols()).unwrap_or(1);
        let found = |first: usize, x: usize, sums: &[f64]| {
            let mut values = [0.0; CHUNK];
            let values = &mut values[..sums.len()];
            for (row, (value, &sum)) in values.iter_mut().zip(sums).enumerate() {
                *value = layer.value_of_rounded(first + row, sum as f32, x_scales[x]);
            }
            give(x, first, values);
        };
        // SAFETY: as in `row`.
        unsafe { tiles.each(weights.bytes(), row, self, room, found) };
    }
}

/// Minimum number of rows of activations for which packing weights pays off.
const FEW: usize = 16;
