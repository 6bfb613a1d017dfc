//! Rows of blocks times 16-bit activations: codes are widened to 16 bits for `smlal`, four rows at a time, or, for many
//! rows of activations, sixteen.

use std::arch::aarch64::*;

use crate::simd::linear::half_planes::HalfPlanes;
use crate::simd::linear::half_tiles::{HalfTile, PanelStrip, by_half_tiles};
use crate::simd::linear::halves::{Halves, by_halves};
use crate::simd::neon::vectors::Neon;

by_halves!(Neon, 4, "neon");
by_half_tiles!(Neon, 16, 4, "neon");

impl Halves<4> for Neon {
    type Values = [int16x8_t; 4];
    type Sums = int32x4_t;
    type Words = int32x4_t;
    type Totals = [float64x2_t; 2];

    #[inline(always)]
    fn load(self, x: &[i16; 32]) -> [int16x8_t; 4] {
        let from = x.as_ptr();
        // SAFETY: the set runs here; 32 values lie there.
        unsafe {
            [
                vld1q_s16(from),
                vld1q_s16(from.add(8)),
                vld1q_s16(from.add(16)),
                vld1q_s16(from.add(24)),
            ]
        }
    }

    #[inline(always)]
    fn none(self) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_s32(0) }
    }

    #[inline(always)]
    fn products(self, weights: &[u8; 32], x: [int16x8_t; 4]) -> int32x4_t {
        // SAFETY: the set runs here; 32 bytes lie there.
        unsafe {
            let mut sums = [vdupq_n_s32(0); 2];
            for (half, x) in x.as_chunks::<2>().0.iter().enumerate() {
                let weights = vld1q_s8(weights.as_ptr().add(16 * half).cast());
                let weights = [vmovl_s8(vget_low_s8(weights)), vmovl_high_s8(weights)];
                for (&weights, &x) in weights.iter().zip(x) {
                    sums[0] = vmlal_s16(sums[0], vget_low_s16(weights), vget_low_s16(x));
                    sums[1] = vmlal_high_s16(sums[1], weights, x);
                }
            }
            vaddq_s32(sums[0], sums[1])
        }
    }

    #[inline(always)]
    fn fold(self, [a, b, c, d]: [int32x4_t; 4]) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)) }
    }

    #[inline(always)]
    fn splat(self, total: f64) -> [float64x2_t; 2] {
        // SAFETY: the set runs here.
        unsafe { [vdupq_n_f64(total); 2] }
    }

    #[inline(always)]
    fn widen(self, words: int32x4_t) -> [float64x2_t; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                vcvtq_f64_s64(vmovl_s32(vget_low_s32(words))),
                vcvtq_f64_s64(vmovl_high_s32(words)),
            ]
        }
    }

    #[inline(always)]
    fn add(
        self,
        totals: [float64x2_t; 2],
        a: [float64x2_t; 2],
        scales: [u16; 4],
    ) -> [float64x2_t; 2] {
        // SAFETY: the set runs here; four patterns are eight bytes.
        unsafe {
            // The bits of an f16 at their places in an f32 are 2¹¹² times too small, including subnormal ones.
            let bits = vmovl_u16(vld1_u16(scales.as_ptr()));
            let magnitudes = vshlq_n_u32::<13>(vandq_u32(bits, vdupq_n_u32(0x7FFF)));
            let above = vdupq_n_f32(f32::from_bits(239 << 23));
            let magnitudes = vmulq_f32(vreinterpretq_f32_u32(magnitudes), above);
            let signs = vshlq_n_u32::<16>(vandq_u32(bits, vdupq_n_u32(0x8000)));
            let scales = vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(magnitudes), signs));
            [
                vfmaq_f64(totals[0], a[0], vcvt_f64_f32(vget_low_f32(scales))),
                vfmaq_f64(totals[1], a[1], vcvt_high_f64_f32(scales)),
            ]
        }
    }

    #[inline(always)]
    fn get(self, totals: [float64x2_t; 2]) -> [f64; 4] {
        let mut all = [0.0; 4];
        // SAFETY: the set runs here; four sums fit there.
        unsafe {
            vst1q_f64(all.as_mut_ptr(), totals[0]);
            vst1q_f64(all.as_mut_ptr().add(2), totals[1]);
        }
        all
    }
}

impl HalfPlanes for Neon {
    const STEP: usize = 16;
    type Factors = [i16; 16];
    type Sums = [int32x4_t; 2];
    type Totals = [float64x2_t; 2];

    #[inline(always)]
    fn factors(self, factors: &[i16; 16]) -> [i16; 16] {
        *factors
    }

    #[inline(always)]
    fn none(self) -> [int32x4_t; 2] {
        // SAFETY: the set runs here.
        unsafe { [vdupq_n_s32(0); 2] }
    }

    /// Two products are at most 2 · 63 · 127, which 16 bits hold.
    #[inline(always)]
    unsafe fn products(
        self,
        mut sums: [int32x4_t; 2],
        codes: *const u8,
        x: [*const i8; 2],
        factors: [i16; 16],
        step: usize,
    ) -> [int32x4_t; 2] {
        let (at, factor) = (16 * step, factors[step]);
        // SAFETY: the set runs here; the rest as the caller promises.
        unsafe {
            let codes = vreinterpretq_s8_u8(vld1q_u8(codes.add(at)));
            for (sums, x) in sums.iter_mut().zip(x) {
                let x = vld1q_s8(x.add(at));
                let twos = vmull_s8(vget_low_s8(codes), vget_low_s8(x));
                let twos = vmlal_high_s8(twos, codes, x);
                *sums = vmlal_n_s16(*sums, vget_low_s16(twos), factor);
                *sums = vmlal_high_n_s16(*sums, twos, factor);
            }
        }
        sums
    }

    #[inline(always)]
    fn zero(self) -> [float64x2_t; 2] {
        self.splat(0.0)
    }

    #[inline(always)]
    fn add(self, totals: [float64x2_t; 2], sums: [int32x4_t; 2], scale: f64) -> [float64x2_t; 2] {
        let [high, low] = sums.map(|sums| self.widen(sums));
        // SAFETY: the set runs here.
        unsafe {
            let both = |half: usize| vfmaq_n_f64(low[half], high[half], 255.0);
            [
                vfmaq_n_f64(totals[0], both(0), scale),
                vfmaq_n_f64(totals[1], both(1), scale),
            ]
        }
    }

    #[inline(always)]
    fn total(self, totals: [float64x2_t; 2]) -> i64 {
        self.get(totals).into_iter().map(|lane| lane as i64).sum()
    }
}

impl HalfTile<16, 4> for Neon {
    #[inline(always)]
    fn multiply(self, strip: PanelStrip<'_, 16, 4>, totals: &mut [[f64; 16]; 4]) {
        for (panel, x, scales) in strip.runs() {
            let mut sums = [[Halves::none(self); 4]; 4];
            for (weights, x) in panel.iter().zip(x) {
                let weights = std::ptr::from_ref(weights).cast::<i16>();
                // SAFETY: the set runs here; sixteen pairs are four vectors.
                unsafe {
                    // The first column of eight rows, and the second.
                    let int16x8x2_t(a0, a1) = vld2q_s16(weights);
                    let int16x8x2_t(b0, b1) = vld2q_s16(weights.add(16));
                    for (sums, x) in sums.iter_mut().zip(x) {
                        for (x, a, b) in [(x[0], a0, b0), (x[1], a1, b1)] {
                            sums[0] = vmlal_n_s16(sums[0], vget_low_s16(a), x);
                            sums[1] = vmlal_high_n_s16(sums[1], a, x);
                            sums[2] = vmlal_n_s16(sums[2], vget_low_s16(b), x);
                            sums[3] = vmlal_high_n_s16(sums[3], b, x);
                        }
                    }
                }
            }
            for (sums, totals) in sums.iter().zip(totals.iter_mut()) {
                for (four, &sums) in sums.iter().enumerate() {
                    for (half, sums) in self.widen(sums).into_iter().enumerate() {
                        let at = 4 * four + 2 * half;
                        // SAFETY: the set runs here; two of sixteen scales and totals are a vector.
                        unsafe {
                            let total = totals.as_mut_ptr().add(at);
                            let scale = vld1q_f64(scales.as_ptr().add(at));
                            vst1q_f64(total, vfmaq_f64(vld1q_f64(total), sums, scale));
                        }
                    }
                }
            }
        }
    }
}
