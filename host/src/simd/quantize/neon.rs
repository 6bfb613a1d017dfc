//! Values, sums and codes in lanes of 128 bits.

use std::arch::aarch64::*;

use tercet_core::number::Element;
use tercet_core::quant::Grid;
use tercet_core::{bf16, f16};

use super::vectors::Neon;
use crate::simd::exact::Window;
use crate::simd::quantize::Quantize;
use crate::simd::quantize::kernels::kernels;
use crate::simd::quantize::lanes::Quantizing;
use crate::simd::vectors::{Vectors, operations};

/// The kernels of quantizers. Every target for AArch64 has NEON, so the compiler vectorizes the plain loops that widen
/// for it.
pub(in crate::simd) const KERNELS: Quantize = LOOPS;

kernels!(Neon, "neon");

impl Quantizing for Neon {
    type Codes = int8x16_t;

    #[inline(always)]
    unsafe fn load_f16(self, at: *const f16) -> int32x4_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            // A loop without branches: the conversion's intrinsic is not stable.
            let halves = at.cast::<[f16; 4]>().read_unaligned();
            let wide = halves.map(|half| Element::to_f32(half).to_bits().cast_signed());
            vld1q_s32(wide.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn load_bf16(self, at: *const bf16) -> int32x4_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { signed(vshll_n_u16::<16>(vld1_u16(at.cast()))) }
    }

    #[inline(always)]
    unsafe fn steps(self, codes: *const i8, zero_point: int32x4_t) -> int32x4_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let codes = codes.cast::<[i8; 4]>().read_unaligned().map(i32::from);
            let steps = vsubq_s32(vld1q_s32(codes.as_ptr()), zero_point);
            vreinterpretq_s32_f32(vcvtq_f32_s32(steps))
        }
    }

    /// Through the caches, like codes.
    #[inline(always)]
    unsafe fn stream_past(self, values: int32x4_t, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { self.store(values, to.cast()) }
    }

    #[inline(always)]
    unsafe fn bytes(self, at: *const u8) -> int32x4_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let four = vcreate_u8(at.cast::<u32>().read_unaligned().into());
            signed(vmovl_u16(vget_low_u16(vmovl_u8(four))))
        }
    }

    #[inline(always)]
    unsafe fn store_tops(self, x: [int32x4_t; 4], to: *mut u16) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            for (at, x) in x.into_iter().enumerate() {
                vst1_u16(to.add(4 * at), vshrn_n_u32::<16>(unsigned(x)));
            }
        }
    }

    #[inline(always)]
    unsafe fn load_codes(self, from: *const i8) -> int8x16_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vld1q_s8(from) }
    }

    #[inline(always)]
    unsafe fn store_codes(self, codes: int8x16_t, to: *mut i8) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vst1q_s8(to, codes) }
    }

    /// Through the caches: these processors decide by themselves which data bypasses them.
    #[inline(always)]
    unsafe fn stream_codes(self, codes: int8x16_t, to: *mut i8) {
        // SAFETY: the caller's promise.
        unsafe { self.store_codes(codes, to) }
    }

    operations! {
        fn larger(self, most: [int32x4_t; 2], x: int32x4_t) -> [int32x4_t; 2] {
            [signed(vmaxq_u32(unsigned(most[0]), unsigned(x))), vmaxq_s32(most[1], x)]
        }
        fn smaller(self, least: [int32x4_t; 2], x: int32x4_t) -> [int32x4_t; 2] {
            [signed(vminq_u32(unsigned(least[0]), unsigned(x))), vminq_s32(least[1], x)]
        }
        fn largest(self, most: [int32x4_t; 2]) -> (u32, i32) { (vmaxvq_u32(unsigned(most[0])), vmaxvq_s32(most[1])) }
        fn smallest(self, least: [int32x4_t; 2]) -> (u32, i32) { (vminvq_u32(unsigned(least[0])), vminvq_s32(least[1])) }
        fn within(self, x: int32x4_t, from: int32x4_t, to: int32x4_t) -> int32x4_t {
            // 31 bits; the ends may have more.
            let magnitude = vandq_u32(unsigned(x), vdupq_n_u32(i32::MAX as u32));
            let (from, to) = (unsigned(from), unsigned(to));
            let within = vandq_u32(vcgeq_u32(magnitude, from), vcleq_u32(magnitude, to));
            signed(vandq_u32(within, magnitude))
        }
        fn add_magnitudes(self, sums: [float64x2_t; 2], x: int32x4_t) -> [float64x2_t; 2] {
            let magnitude = vandq_u32(unsigned(x), vdupq_n_u32(i32::MAX as u32));
            let lows = vshll_n_u32::<29>(vget_low_u32(magnitude));
            let highs = vshll_high_n_u32::<29>(magnitude);
            [
                vaddq_f64(sums[0], vreinterpretq_f64_u64(lows)),
                vaddq_f64(sums[1], vreinterpretq_f64_u64(highs)),
            ]
        }
        fn units(self, sums: &[[float64x2_t; 2]; 4], window: Window) -> u64 {
            let [first, second] = window.factors();
            let (first, second) = (vdupq_n_f64(first), vdupq_n_f64(second));
            let mut units = vdupq_n_u64(0);
            for &sum in sums.as_flattened() {
                let sum = vmulq_f64(vmulq_f64(sum, first), second);
                units = vaddq_u64(units, vcvtq_u64_f64(sum));
            }
            vaddvq_u64(units)
        }
        fn signs(self, x: [int32x4_t; 4], threshold: u32) -> (int8x16_t, u32) {
            let from = vdupq_n_u32(threshold);
            let (magnitudes, ones) = (vdupq_n_u32(i32::MAX as u32), vdupq_n_s32(1));
            let mut narrow = [vdup_n_s16(0); 4];
            for (narrow, x) in narrow.iter_mut().zip(x) {
                let coded = vcgeq_u32(vandq_u32(unsigned(x), magnitudes), from);
                let sign = vorrq_s32(vshrq_n_s32::<31>(x), ones);
                *narrow = vmovn_s32(vandq_s32(sign, signed(coded)));
            }
            let [a, b, c, d] = narrow;
            let (low, high) = (vcombine_s16(a, b), vcombine_s16(c, d));
            let signs = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
            // At most 1 in magnitude, so that the sum is at most 16.
            let count = vaddvq_u8(vreinterpretq_u8_s8(vabsq_s8(signs)));
            (signs, u32::from(count))
        }
        fn divide_f32(self, x: int32x4_t, by: int32x4_t) -> int32x4_t {
            vreinterpretq_s32_f32(vdivq_f32(vreinterpretq_f32_s32(x), vreinterpretq_f32_s32(by)))
        }
        fn off(self, x: int32x4_t) -> int32x4_t {
            let x = vreinterpretq_f32_s32(x);
            // Exact: both are within a half, or x is an integer.
            vreinterpretq_s32_f32(vabsq_f32(vsubq_f32(x, vrndnq_f32(x))))
        }
        fn round(self, x: int32x4_t, grid: &Grid) -> int32x4_t {
            // As in the reference: one step beyond each end, so that steps and codes before clipping fit 16 bits.
            let [zero, low, high] = [grid.zero_point, grid.low, grid.high].map(i16::from);
            let below = vdupq_n_f32(f32::from(low - zero - 1));
            let above = vdupq_n_f32(f32::from(high - zero + 1));
            // This maximum returns the number if the other operand is NaN, as the reference's comparison does.
            let x = vminnmq_f32(vmaxnmq_f32(vreinterpretq_f32_s32(x), below), above);
            vcvtnq_s32_f32(x)
        }
        fn codes(self, steps: [int32x4_t; 4], grid: &Grid) -> (int8x16_t, u32, u32) {
            let zero_point = vdupq_n_s16(grid.zero_point.into());
            let (low, high) = (vdupq_n_s16(grid.low.into()), vdupq_n_s16(grid.high.into()));
            let [a, b, c, d] = steps;
            let ab = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
            let cd = vcombine_s16(vmovn_s32(c), vmovn_s32(d));
            let (free_ab, free_cd) = (vaddq_s16(ab, zero_point), vaddq_s16(cd, zero_point));
            let ab = vminq_s16(vmaxq_s16(free_ab, low), high);
            let cd = vminq_s16(vmaxq_s16(free_cd, low), high);
            let code = vcombine_s8(vmovn_s16(ab), vmovn_s16(cd));
            let unmoved = vceqq_s8(code, vdupq_n_s8(grid.zero_point));
            let (same_ab, same_cd) = (vceqq_s16(ab, free_ab), vceqq_s16(cd, free_cd));
            let same = vcombine_u8(vmovn_u16(same_ab), vmovn_u16(same_cd));
            (code, zeros(unmoved), zeros(same))
        }
        fn choose(self, table: int32x4_t, codes: int32x4_t, shift: u32) -> int32x4_t {
            let codes = vshlq_u32(unsigned(codes), vdupq_n_s32(-(shift as i32)));
            let codes = vandq_u32(codes, vdupq_n_u32(3));
            // The four bytes of a pattern, from the table's 16.
            let bytes = vmlaq_n_u32(vdupq_n_u32(0x0302_0100), codes, 0x0404_0404);
            let (table, bytes) = (vreinterpretq_u8_s32(table), vreinterpretq_u8_u32(bytes));
            vreinterpretq_s32_u8(vqtbl1q_u8(table, bytes))
        }
        fn pack(self, packed: int8x16_t, codes: int8x16_t) -> int8x16_t {
            vaddq_s8(vshlq_n_s8::<2>(packed), vaddq_s8(codes, vdupq_n_s8(1)))
        }
        fn ordered(self, x: int32x4_t) -> int32x4_t {
            veorq_s32(x, vorrq_s32(vshrq_n_s32::<31>(x), vdupq_n_s32(i32::MIN)))
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn signed(x: uint32x4_t) -> int32x4_t {
    vreinterpretq_s32_u32(x)
}

#[inline]
#[target_feature(enable = "neon")]
fn unsigned(x: int32x4_t) -> uint32x4_t {
    vreinterpretq_u32_s32(x)
}

/// Returns the number of zero bytes of a mask.
#[inline]
#[target_feature(enable = "neon")]
fn zeros(mask: uint8x16_t) -> u32 {
    u32::from(vaddvq_u8(vaddq_u8(mask, vdupq_n_u8(1))))
}
