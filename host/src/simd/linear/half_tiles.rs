//! Many rows of 16-bit activations as a whole: a panel of rows of weights is multiplied with a few of them at a time.
//!
//! Rows of weights are in parallel lanes, with two columns per lane, so that an instruction multiplies both and adds;
//! activations need no special order. After each block of 32 columns its sums, below 2²⁷, are multiplied by the scales
//! in f64; see [`super::halves`] for why that is exact.

use tercet_core::block::Format;

use super::half_product::{HalfProduct, Values};
use crate::simd::blocks::codes::{Codes, fixed, offset_of};

/// Rows of activations that are multiplied with a block of a panel at a time.
pub(in crate::simd) const STRIP: usize = 4;
/// Pairs of columns per block.
pub(in crate::simd) const PAIRS: usize = 16;
/// Rows of [`Sixteen`].
const LANES: usize = 16;

/// Two columns of sixteen rows of weights.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::simd) struct Sixteen(pub(in crate::simd) [[i16; 2]; LANES]);

/// A panel, and its results.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    /// Block after block, pair after pair of its columns, all rows.
    pairs: Vec<Sixteen>,
    /// Scales of a block's rows times 2²⁴, block after block, and minima, if the format has them.
    scales: Vec<f64>,
    minima: Vec<f64>,
    /// Sums in units of 2⁻²⁴: those of all rows with a row of activations, then with the next.
    totals: Vec<f64>,
}

/// The functions of one instruction set for a format.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct HalfTiles {
    /// Rows per panel.
    rows: usize,
    /// Multiplies rows of weights, at most as many as a panel has, by all rows of activations.
    multiply: unsafe fn(&[u8], &HalfProduct, &mut Panel),
}

/// How a detected instruction set multiplies a block of a panel with `ROWS` rows.
pub(in crate::simd) trait HalfTile<const ROWS: usize>: Copy {
    /// Adds to `totals` the sums of some rows of activations, times the scales of the weights' rows, and these rows'
    /// minima times sums of the activations.
    ///
    /// # Safety
    /// The panel has `ROWS / 16` for each of [`PAIRS`].
    unsafe fn multiply(
        self,
        panel: &[Sixteen],
        x: [&Values; STRIP],
        scales: &[f64; ROWS],
        minima: Option<(&[f64; ROWS], [f64; STRIP])>,
        totals: &mut [[f64; ROWS]; STRIP],
    );
}

/// As [`HalfTiles::multiply`].
#[inline(always)]
pub(in crate::simd) fn multiply<S, C, const ROWS: usize, const BYTES: usize>(
    set: S,
    bytes: &[u8],
    x: &HalfProduct,
    room: &mut Panel,
) where
    S: HalfTile<ROWS>,
    C: Codes<32, BYTES>,
{
    let has_minima = const { C::FORMAT.min_offset().is_some() };
    let blocks = x.blocks();
    pack::<C, ROWS, BYTES>(bytes, blocks, room);
    room.totals.clear();
    room.totals
        .resize(x.rows().next_multiple_of(STRIP) * ROWS, 0.0);
    let panel = room.pairs.chunks_exact(PAIRS * ROWS / LANES);
    let scales = room.scales.as_chunks::<ROWS>().0;
    let minima = room.minima.as_chunks::<ROWS>().0;
    let totals = room.totals.as_chunks_mut::<ROWS>().0;
    for (block, (panel, scales)) in panel.zip(scales).enumerate() {
        for (strip, totals) in totals.as_chunks_mut::<STRIP>().0.iter_mut().enumerate() {
            let mut rows = [x.values(0, block); STRIP];
            let mut sums = [0.0; STRIP];
            for number in 0..STRIP {
                // The last row replaces missing ones.
                let row = (strip * STRIP + number).min(x.rows() - 1);
                rows[number] = x.values(row, block);
                if has_minima {
                    sums[number] = x.sum(row, block);
                }
            }
            let minima = match has_minima {
                true => minima.get(block).map(|minima| (minima, sums)),
                false => None,
            };
            // SAFETY: a block of a panel was packed so.
            unsafe { set.multiply(panel, rows, scales, minima, totals) };
        }
    }
}

/// Brings rows into a panel's order; missing rows are zeros.
#[inline(always)]
fn pack<C: Codes<32, BYTES>, const ROWS: usize, const BYTES: usize>(
    bytes: &[u8],
    blocks: usize,
    room: &mut Panel,
) {
    let min_at = const { C::FORMAT.min_offset() };
    let scale_at = const { C::FORMAT.scale_offset() };
    let offset = const { offset_of(C::FORMAT) as i16 };
    let block_len = PAIRS * ROWS / LANES;
    room.pairs
        .resize(blocks * block_len, Sixteen([[0; 2]; LANES]));
    room.scales.resize(blocks * ROWS, 0.0);
    room.minima
        .resize(if min_at.is_some() { blocks * ROWS } else { 0 }, 0.0);
    let scale_of = |block: &[u8; BYTES], at: usize| {
        fixed(half::f16::from_le_bytes([block[at], block[at + 1]])) as f64
    };
    let mut rows = bytes.chunks_exact(blocks * BYTES);
    for row in 0..ROWS {
        let Some(bytes) = rows.next() else {
            room.scales
                .iter_mut()
                .skip(row)
                .step_by(ROWS)
                .for_each(|scale| *scale = 0.0);
            room.minima
                .iter_mut()
                .skip(row)
                .step_by(ROWS)
                .for_each(|min| *min = 0.0);
            continue;
        };
        for (at, block) in bytes.as_chunks::<BYTES>().0.iter().enumerate() {
            let mut codes = [0; 32];
            C::unpack(block, &mut codes);
            let panel = &mut room.pairs[at * block_len..][..block_len];
            let lanes = panel.iter_mut().skip(row / LANES).step_by(ROWS / LANES);
            for (lanes, codes) in lanes.zip(codes.as_chunks::<2>().0) {
                lanes.0[row % LANES] = [i16::from(codes[0]) - offset, i16::from(codes[1]) - offset];
            }
            room.scales[at * ROWS + row] = scale_of(block, scale_at);
            if let Some(min_at) = min_at {
                room.minima[at * ROWS + row] = scale_of(block, min_at);
            }
        }
    }
}

impl HalfTiles {
    /// Returns the functions for panels of so many rows.
    pub(in crate::simd) const fn new(
        rows: usize,
        multiply: unsafe fn(&[u8], &HalfProduct, &mut Panel),
    ) -> Self {
        Self { rows, multiply }
    }

    /// Multiplies rows of weights by all rows of activations, and calls `found` with the first of some rows, the number
    /// of a row of activations, and the sums of these, in units of 2⁻²⁴.
    ///
    /// # Safety
    /// The set must run here. `row` is the bytes per row, and there are only whole rows.
    pub(super) unsafe fn each(
        self,
        bytes: &[u8],
        row: usize,
        x: &HalfProduct,
        room: &mut Panel,
        mut found: impl FnMut(usize, usize, &[f64]),
    ) {
        for (panel, bytes) in bytes.chunks(self.rows * row).enumerate() {
            // SAFETY: as the caller promises.
            unsafe { (self.multiply)(bytes, x, room) };
            let count = bytes.len() / row;
            let totals = room.totals.chunks_exact(self.rows);
            for (number, totals) in totals.take(x.rows()).enumerate() {
                found(panel * self.rows, number, &totals[..count]);
            }
        }
    }
}

/// For sets without these kernels.
pub(in crate::simd) fn none(_: Format) -> Option<HalfTiles> {
    None
}
