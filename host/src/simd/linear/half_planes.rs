//! Rows of blocks of 256, with parts or without, times 16-bit activations: a block is unpacked once, and both planes of
//! its activations are multiplied by its codes.
//!
//! Codes are as stored; what they are larger by than weights is subtracted with sums of activations. A block's products
//! with a plane are at most 2⁷ · 2⁸ · 63 · 127, and so below 2²⁸. Both planes together, times the scale, are added in
//! f64, where the sums of weights are exact; see [`super::halves`]. The sums of codes can be twice as large, but are in
//! lanes, each of which has at most a quarter of them, and the lanes are added as integers.

use super::half_product::{BLOCK, Planes};
use crate::simd::blocks::codes::{Codes, MOST_PARTS, fixed, offset_of};
use crate::simd::stores::ask;

/// Codes that share a factor.
const PART: usize = BLOCK / MOST_PARTS;
/// Bytes per cache line.
const LINE: usize = 64;
/// Bytes by which weights are read ahead.
const AHEAD: usize = 4096;

/// The inverse of the unit of a sum, 2⁻²⁴.
const UNIT: f64 = 1.0 / 16_777_216.0;

/// How a detected instruction set multiplies.
pub(in crate::simd) trait HalfPlanes: Copy {
    /// Codes per step: whole parts.
    const STEP: usize;
    /// A factor for each part of a block.
    type Factors: Copy;
    /// Sums of both planes' products, in lanes of 32 bits.
    type Sums: Copy;
    /// Sums of both planes together, in lanes of f64.
    type Totals: Copy;

    /// Loads factors.
    fn factors(self, factors: &[i16; MOST_PARTS]) -> Self::Factors;
    /// Returns sums of 0.
    fn none(self) -> Self::Sums;
    /// Returns the sums plus Σ factor · Σ code · x over the parts of a step, given its number.
    ///
    /// # Safety
    /// A block of codes and of either plane can be read, and has this step.
    unsafe fn products(
        self,
        sums: Self::Sums,
        codes: *const u8,
        x: [*const i8; 2],
        factors: Self::Factors,
        step: usize,
    ) -> Self::Sums;
    /// Returns totals of 0.
    fn zero(self) -> Self::Totals;
    /// Returns totals + (255 · high + low) · scale.
    fn add(self, totals: Self::Totals, sums: Self::Sums, scale: f64) -> Self::Totals;
    /// Returns the sum of all lanes, which are integers.
    fn total(self, totals: Self::Totals) -> i64;
}

/// As [`super::halves::PlaneRows`].
#[inline(always)]
pub(in crate::simd) fn rows<S: HalfPlanes, C: Codes<BLOCK, BYTES>, const BYTES: usize>(
    set: S,
    bytes: &[u8],
    x: &[Planes],
    out: &mut [f64],
) {
    let apart = const { C::FORMAT.part_len() / PART };
    let offset = const { offset_of(C::FORMAT) };
    for (row, out) in bytes.chunks_exact(x.len() * BYTES).zip(out) {
        let mut totals = set.zero();
        let mut more = 0;
        for (block, x) in row.as_chunks::<BYTES>().0.iter().zip(x) {
            for line in (0..BYTES).step_by(LINE) {
                ask(block.as_ptr().wrapping_add(AHEAD + line));
            }
            let mut codes = [0; BLOCK];
            C::unpack(block, &mut codes);
            let (of_scale, of_min) = C::factors(block);
            let mut factors = [0; MOST_PARTS];
            for (part, factor) in factors.iter_mut().enumerate() {
                *factor = of_scale[part / apart];
            }
            let loaded = set.factors(&factors);
            let mut sums = set.none();
            for step in 0..const { BLOCK / S::STEP } {
                let x = [x.high.as_ptr(), x.low.as_ptr()];
                // SAFETY: these are blocks.
                sums = unsafe { set.products(sums, codes.as_ptr(), x, loaded, step) };
            }
            let scale = fixed(C::FORMAT.scale(block));
            totals = set.add(totals, sums, scale as f64);
            let weigh = |factors: &[i16; MOST_PARTS]| -> i32 {
                let pairs = factors.iter().zip(&x.sums);
                pairs.map(|(&factor, &sum)| i32::from(factor) * sum).sum()
            };
            // Below 2³¹.
            if offset != 0 {
                more -= scale * i64::from(offset) * i64::from(weigh(&factors));
            }
            if C::FORMAT.min_offset().is_some() {
                let mut minima = [0; MOST_PARTS];
                for (part, factor) in minima.iter_mut().enumerate() {
                    *factor = of_min[part / apart];
                }
                more += fixed(C::FORMAT.min(block)) * i64::from(weigh(&minima));
            }
        }
        *out = (set.total(totals) + more) as f64 * UNIT;
    }
}
