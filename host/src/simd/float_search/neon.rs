//! Float search, 4 values a vector: 64 lanes are sixteen vectors of f32, or 32 of f64 in passes.

use std::arch::aarch64::*;

use super::cluster::Neon as Points;
use super::quantize::Neon;
use crate::simd::cluster;
use crate::simd::float_search::kernels::float_kernels;
use crate::simd::float_search::lanes::Lanes;

float_kernels!(
    Neon, "neon",
    sums: 16 of 1,
    products: 8 x 2 of 1,
    norms: 4 x 4
);

impl Lanes for Neon {
    const PARTIAL: bool = false;

    #[inline(always)]
    unsafe fn plus(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        // SAFETY: the set runs here.
        unsafe { vreinterpretq_u32_f32(vaddq_f32(floats(a), floats(b))) }
    }

    #[inline(always)]
    unsafe fn minus(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        // SAFETY: the set runs here.
        unsafe { vreinterpretq_u32_f32(vsubq_f32(floats(a), floats(b))) }
    }

    #[inline(always)]
    unsafe fn select(set: u64, new: uint32x4_t, old: uint32x4_t) -> uint32x4_t {
        // SAFETY: the set runs here; four words lie there.
        unsafe {
            let places = vld1q_u32([1, 2, 4, 8].as_ptr());
            vbslq_u32(vtstq_u32(vdupq_n_u32(set as u32), places), new, old)
        }
    }

    #[inline(always)]
    unsafe fn halved(x: uint32x4_t) -> f32 {
        // SAFETY: the set runs here.
        unsafe {
            let x = floats(x);
            vpadds_f32(vadd_f32(vget_low_f32(x), vget_high_f32(x)))
        }
    }

    #[inline(always)]
    unsafe fn no_products() -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_f64(-0.0) }
    }

    #[inline(always)]
    unsafe fn doubles(x: uint32x4_t) -> [float64x2_t; 2] {
        // SAFETY: the set runs here.
        unsafe {
            let x = floats(x);
            [vcvt_f64_f32(vget_low_f32(x)), vcvt_high_f64_f32(x)]
        }
    }

    #[inline(always)]
    unsafe fn plus_product(sum: float64x2_t, a: float64x2_t, b: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vfmaq_f64(sum, a, b) }
    }

    #[inline(always)]
    unsafe fn plus_wide(a: float64x2_t, b: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vaddq_f64(a, b) }
    }

    #[inline(always)]
    unsafe fn select_wide(set: u64, new: float64x2_t, old: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here; two words lie there.
        unsafe {
            let places = vld1q_u64([1, 2].as_ptr());
            vbslq_f64(vtstq_u64(vdupq_n_u64(set), places), new, old)
        }
    }

    #[inline(always)]
    unsafe fn halved_wide(x: float64x2_t) -> f64 {
        // SAFETY: the set runs here.
        unsafe { vpaddd_f64(x) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { <Points as cluster::lanes::Lanes>::prefetch(at) }
    }
}

/// Patterns as floats.
#[inline]
#[target_feature(enable = "neon")]
fn floats(patterns: uint32x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(patterns)
}
