//! Comparisons of tensors in lanes of 128 bits.

use std::arch::aarch64::*;

use tercet_core::quant::RowSums;

use crate::simd::compare::{self, Lanes, Row};

/// As the table says.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn rows(a: &[Row], b: &[Row], sums: &mut RowSums) -> f64 {
    // SAFETY: the set runs here; who calls has as many rows in both.
    unsafe { compare::rows::<Neon>(a, b, sums) }
}

/// 2 lanes.
struct Neon;

impl Lanes for Neon {
    type Vector = float64x2_t;
    const WIDTH: usize = 2;

    #[inline(always)]
    unsafe fn widen(at: *const f32) -> float64x2_t {
        // SAFETY: the caller's promise.
        unsafe { vcvt_f64_f32(vld1_f32(at)) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f64) -> float64x2_t {
        // SAFETY: the caller's promise.
        unsafe { vld1q_f64(at) }
    }

    #[inline(always)]
    unsafe fn store(x: float64x2_t, at: *mut f64) {
        // SAFETY: the caller's promise.
        unsafe { vst1q_f64(at, x) }
    }

    #[inline(always)]
    unsafe fn zeros() -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_f64(0.0) }
    }

    #[inline(always)]
    unsafe fn add(a: float64x2_t, b: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vaddq_f64(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: float64x2_t, b: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vsubq_f64(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: float64x2_t, b: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vmulq_f64(a, b) }
    }

    #[inline(always)]
    unsafe fn larger(most: float64x2_t, x: float64x2_t) -> float64x2_t {
        // SAFETY: the set runs here.
        unsafe { vmaxq_f64(most, vabsq_f64(x)) }
    }
}
