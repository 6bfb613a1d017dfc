//! Rows of blocks of 32 times 16-bit activations as a whole: a code of a row is multiplied once with a 16-bit
//! activation, while [`super::product`] multiplies it with two of 8 bits.
//!
//! Some rows are in parallel lanes, so that a block's activations are loaded once for all of them and sums of lanes
//! need no extra steps. A block's sum is below 2²⁷. Its product with an f16 scale is exact in f64, and so is every sum
//! of such products if the matrix reports that it takes fewer than 53 bits
//! ([`Matrix::wide_sum_bits`](tercet_core::linear::Matrix::wide_sum_bits)).

use tercet_core::block::Format;

use super::activations::Activations;
use super::half_product::{Planes, Values};
use crate::simd::blocks::codes::{Codes, offset_of};
use crate::simd::stores::ask;

/// Bytes per cache line.
const LINE: usize = 64;

/// Computes rows of a format times activations.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) enum HalfRows {
    /// For blocks of 32 with one scale.
    Values(ValueRows),
    /// For blocks of 256.
    Planes(PlaneRows),
    /// For any blocks, with activations in an order of their own.
    Lines(LineRows),
}

/// The arguments are the bytes of as many rows as there are sums, the activations and, for every 32, their sum.
pub(in crate::simd) type ValueRows = unsafe fn(&[u8], &[Values], &[f64], &mut [f64]);

/// The arguments are the bytes of as many rows as there are sums, and the activations.
pub(in crate::simd) type PlaneRows = unsafe fn(&[u8], &[Planes], &mut [f64]);

/// The functions of a set that multiplies both planes of activations in an order of its own.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct LineRows {
    /// Brings a row of activations into that order: its high plane, and its low one.
    pub(in crate::simd) prepare: unsafe fn([&[i8]; 2], &mut Activations),
    /// As [`PlaneRows`].
    pub(in crate::simd) rows: unsafe fn(&[u8], &Activations, &mut [f64]),
}

/// How a detected instruction set multiplies `ROWS` rows.
pub(in crate::simd) trait Halves<const ROWS: usize>: Copy {
    /// 32 activations.
    type Values: Copy;
    /// Lanes of 32 bits whose total is a block's sum.
    type Sums: Copy;
    /// Sums of rows, one per lane.
    type Words: Copy;
    /// Sums of rows with their scales, one per lane.
    type Totals: Copy;

    /// Loads activations.
    fn load(self, x: &Values) -> Self::Values;
    /// Returns a sum of 0.
    fn none(self) -> Self::Sums;
    /// Returns products of a row's signed weights.
    fn products(self, weights: &[u8; 32], x: Self::Values) -> Self::Sums;
    /// Returns the total of each row.
    fn fold(self, sums: [Self::Sums; ROWS]) -> Self::Words;
    /// Returns the same total for all rows.
    fn splat(self, total: f64) -> Self::Totals;
    /// Converts words to numbers.
    fn widen(self, words: Self::Words) -> Self::Totals;
    /// Returns totals + a · scale; the scales are patterns of f16.
    fn add(self, totals: Self::Totals, a: Self::Totals, scales: [u16; ROWS]) -> Self::Totals;
    /// Returns the totals.
    fn get(self, totals: Self::Totals) -> [f64; ROWS];
}

/// As [`ValueRows`]: Σ d · Σ code · x, and Σ m · Σx, of a row's blocks.
#[inline(always)]
pub(in crate::simd) fn rows<S, C, const ROWS: usize, const BYTES: usize>(
    set: S,
    bytes: &[u8],
    x: &[Values],
    sums: &[f64],
    out: &mut [f64],
) where
    S: Halves<ROWS>,
    C: Codes<32, BYTES>,
{
    let scale_at = const { C::FORMAT.scale_offset() };
    let min_at = const { C::FORMAT.min_offset() };
    let offset = const { offset_of(C::FORMAT) as u8 };
    let row = x.len() * BYTES;
    assert!(bytes.len() == out.len() * row && sums.len() == x.len());
    for (bytes, out) in bytes.chunks(ROWS * row).zip(out.chunks_mut(ROWS)) {
        // The last row replaces missing ones; their sums are left out.
        let mut starts = [bytes.as_ptr(); ROWS];
        for (number, start) in starts.iter_mut().enumerate() {
            *start = bytes[row * number.min(out.len() - 1)..].as_ptr();
        }
        let mut totals = set.splat(0.0);
        for (at, (x, &sum)) in x.iter().zip(sums).enumerate() {
            // The next rows are after these, in order.
            let next = bytes.as_ptr().wrapping_add(ROWS * row + ROWS * BYTES * at);
            for line in 0..(ROWS * BYTES).div_ceil(LINE) {
                ask(next.wrapping_add(LINE * line));
            }
            let x = set.load(x);
            let mut products = [set.none(); ROWS];
            let (mut scales, mut minima) = ([0; ROWS], [0; ROWS]);
            for row in 0..ROWS {
                // SAFETY: a row has a block for each 32 activations.
                let block = unsafe { &*starts[row].add(at * BYTES).cast::<[u8; BYTES]>() };
                let mut weights = [0; 32];
                C::unpack(block, &mut weights);
                // Not `map` of an array, which is not compiled for the set.
                for code in &mut weights {
                    *code = code.wrapping_sub(offset);
                }
                products[row] = set.products(&weights, x);
                scales[row] = u16::from_le_bytes([block[scale_at], block[scale_at + 1]]);
                if let Some(at) = min_at {
                    minima[row] = u16::from_le_bytes([block[at], block[at + 1]]);
                }
            }
            totals = set.add(totals, set.widen(set.fold(products)), scales);
            if min_at.is_some() {
                totals = set.add(totals, set.splat(sum), minima);
            }
        }
        for (out, total) in out.iter_mut().zip(set.get(totals)) {
            *out = total;
        }
    }
}

/// Defines the functions of a set for formats, compiled for its features. The number is that of rows of weights in
/// lanes.
macro_rules! by_halves {
    ($set:ty, $rows:literal, $features:literal) => {
        /// Returns the kernel for rows of a format; `None` if its blocks have 64 values.
        pub(in crate::simd) fn halves(
            format: tercet_core::block::Format,
        ) -> Option<$crate::simd::linear::HalfRows> {
            use tercet_core::block::Format;

            use $crate::simd::blocks::codes::{self, Codes};
            use $crate::simd::linear::half_product::{Planes, Values};
            use $crate::simd::linear::{HalfRows, half_planes, halves};

            #[target_feature(enable = $features)]
            fn values<C: Codes<32, BYTES>, const BYTES: usize>(
                bytes: &[u8],
                x: &[Values],
                sums: &[f64],
                out: &mut [f64],
            ) {
                halves::rows::<_, C, $rows, BYTES>(<$set>::here(), bytes, x, sums, out);
            }
            #[target_feature(enable = $features)]
            fn planes<C: Codes<256, BYTES>, const BYTES: usize>(
                bytes: &[u8],
                x: &[Planes],
                out: &mut [f64],
            ) {
                half_planes::rows::<_, C, BYTES>(<$set>::here(), bytes, x, out);
            }
            Some(match format {
                Format::Q8_0 => HalfRows::Values(values::<codes::Q8_0, 34>),
                Format::Q4_0 => HalfRows::Values(values::<codes::Q4_0, 18>),
                Format::Q4_1 => HalfRows::Values(values::<codes::Q4_1, 20>),
                Format::Q5_0 => HalfRows::Values(values::<codes::Q5_0, 22>),
                Format::Q5_1 => HalfRows::Values(values::<codes::Q5_1, 24>),
                Format::Q4K => HalfRows::Planes(planes::<codes::Q4K, 144>),
                Format::Q6K => HalfRows::Planes(planes::<codes::Q6K, 210>),
                Format::Tq1_0 => HalfRows::Planes(planes::<codes::Tq1_0, 54>),
                Format::Tq2_0 => HalfRows::Planes(planes::<codes::Tq2_0, 66>),
                Format::Q2_0 => return None,
            })
        }
    };
}
pub(in crate::simd) use by_halves;

/// For sets without these kernels.
pub(in crate::simd) fn none(_: Format) -> Option<HalfRows> {
    None
}
