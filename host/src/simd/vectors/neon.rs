//! Vectors of 128 bits.

use std::arch::aarch64::*;

use crate::simd::vectors::{Doubles, Vectors, operations};

/// NEON, which this machine supports: 4 lanes.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Neon(());

impl Neon {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(in crate::simd) fn here() -> Self {
        Self(())
    }
}

/// One bit per lane, the lowest first.
const PLACES: [u32; 4] = [1, 2, 4, 8];

impl Vectors for Neon {
    type Words = int32x4_t;
    type Mask = uint32x4_t;

    #[inline(always)]
    fn lanes(self) -> usize {
        4
    }

    #[inline(always)]
    unsafe fn load(self, from: *const i32) -> int32x4_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vld1q_s32(from) }
    }

    #[inline(always)]
    unsafe fn store(self, words: int32x4_t, to: *mut i32) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vst1q_s32(to, words) }
    }

    #[inline(always)]
    unsafe fn store_bytes(self, words: int32x4_t, to: *mut u8) {
        // SAFETY: the set runs here; the caller's promise about 4 bytes.
        unsafe {
            let halves = vmovn_u32(vreinterpretq_u32_s32(words));
            let bytes = vmovn_u16(vcombine_u16(halves, halves));
            to.cast::<u32>()
                .write_unaligned(vget_lane_u32::<0>(vreinterpret_u32_u8(bytes)));
        }
    }

    #[inline(always)]
    unsafe fn turn(self, rows: *const i8, stride: usize) -> [int32x4_t; 4] {
        // SAFETY: the set runs here; the caller's promise about 4 rows.
        unsafe {
            let row = |row: usize| vreinterpretq_s32_s8(vld1q_s8(rows.add(row * stride)));
            let rows = [row(0), row(1), row(2), row(3)];
            // A matrix of 4 × 4 words.
            let even01 = vreinterpretq_s64_s32(vtrn1q_s32(rows[0], rows[1]));
            let even23 = vreinterpretq_s64_s32(vtrn1q_s32(rows[2], rows[3]));
            let odd01 = vreinterpretq_s64_s32(vtrn2q_s32(rows[0], rows[1]));
            let odd23 = vreinterpretq_s64_s32(vtrn2q_s32(rows[2], rows[3]));
            [
                vreinterpretq_s32_s64(vzip1q_s64(even01, even23)),
                vreinterpretq_s32_s64(vzip1q_s64(odd01, odd23)),
                vreinterpretq_s32_s64(vzip2q_s64(even01, even23)),
                vreinterpretq_s32_s64(vzip2q_s64(odd01, odd23)),
            ]
        }
    }

    operations! {
        fn splat(self, value: i32) -> int32x4_t { vdupq_n_s32(value) }
        fn add(self, a: int32x4_t, b: int32x4_t) -> int32x4_t { vaddq_s32(a, b) }
        fn subtract(self, a: int32x4_t, b: int32x4_t) -> int32x4_t { vsubq_s32(a, b) }
        fn max(self, a: int32x4_t, b: int32x4_t) -> int32x4_t { vmaxq_s32(a, b) }
        fn and(self, a: int32x4_t, b: int32x4_t) -> int32x4_t { vandq_s32(a, b) }
        fn half(self, words: int32x4_t) -> int32x4_t {
            vreinterpretq_s32_u32(vshrq_n_u32::<1>(vreinterpretq_u32_s32(words)))
        }
        fn exceeds(self, a: int32x4_t, b: int32x4_t) -> uint32x4_t { vcgtq_s32(a, b) }
        fn equals(self, a: int32x4_t, b: int32x4_t) -> uint32x4_t { vceqq_s32(a, b) }
        fn select(self, mask: uint32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t { vbslq_s32(mask, a, b) }
        fn bits(self, mask: uint32x4_t) -> u64 {
            vaddvq_u32(vandq_u32(mask, vld1q_u32(PLACES.as_ptr()))).into()
        }
        fn to_f32(self, integers: int32x4_t) -> int32x4_t { vreinterpretq_s32_f32(vcvtq_f32_s32(integers)) }
        fn multiply_f32(self, a: int32x4_t, b: int32x4_t) -> int32x4_t {
            vreinterpretq_s32_f32(vmulq_f32(vreinterpretq_f32_s32(a), vreinterpretq_f32_s32(b)))
        }
        fn add_f32(self, a: int32x4_t, b: int32x4_t) -> int32x4_t {
            vreinterpretq_s32_f32(vaddq_f32(vreinterpretq_f32_s32(a), vreinterpretq_f32_s32(b)))
        }
        fn subtract_f32(self, a: int32x4_t, b: int32x4_t) -> int32x4_t {
            vreinterpretq_s32_f32(vsubq_f32(vreinterpretq_f32_s32(a), vreinterpretq_f32_s32(b)))
        }
        fn truncate(self, x: int32x4_t) -> int32x4_t { vcvtq_s32_f32(vreinterpretq_f32_s32(x)) }
        fn reaches_f32(self, a: int32x4_t, b: int32x4_t) -> uint32x4_t {
            vcgeq_f32(vreinterpretq_f32_s32(a), vreinterpretq_f32_s32(b))
        }
    }
}

impl Doubles for Neon {
    type Doubles = float64x2_t;

    #[inline(always)]
    unsafe fn widen(self, from: *const f32) -> float64x2_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vcvt_f64_f32(vld1_f32(from)) }
    }

    #[inline(always)]
    unsafe fn load_f64(self, from: *const f64) -> float64x2_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vld1q_f64(from) }
    }

    #[inline(always)]
    unsafe fn store_f64(self, x: float64x2_t, to: *mut f64) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vst1q_f64(to, x) }
    }

    operations! {
        fn splat_f64(self, value: f64) -> float64x2_t { vdupq_n_f64(value) }
        fn add_f64(self, a: float64x2_t, b: float64x2_t) -> float64x2_t { vaddq_f64(a, b) }
        fn subtract_f64(self, a: float64x2_t, b: float64x2_t) -> float64x2_t { vsubq_f64(a, b) }
        fn multiply_f64(self, a: float64x2_t, b: float64x2_t) -> float64x2_t { vmulq_f64(a, b) }
        fn larger_f64(self, most: float64x2_t, x: float64x2_t) -> float64x2_t {
            vmaxq_f64(most, vabsq_f64(x))
        }
    }
}
