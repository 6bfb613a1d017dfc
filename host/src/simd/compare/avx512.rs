//! Comparisons of tensors in lanes of 512 bits.

use std::arch::x86_64::*;

use tercet_core::quant::RowSums;

use crate::simd::compare::{self, Lanes, Row};

/// As the table says.
#[target_feature(enable = "avx512f,avx512dq")]
pub(in crate::simd) fn rows(a: &[Row], b: &[Row], sums: &mut RowSums) -> f64 {
    // SAFETY: the set runs here; who calls has as many rows in both.
    unsafe { compare::rows::<Avx512>(a, b, sums) }
}

/// 8 lanes.
struct Avx512;

impl Lanes for Avx512 {
    type Vector = __m512d;
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn widen(at: *const f32) -> __m512d {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(at)) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f64) -> __m512d {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_pd(at) }
    }

    #[inline(always)]
    unsafe fn store(x: __m512d, at: *mut f64) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_pd(at, x) }
    }

    #[inline(always)]
    unsafe fn zeros() -> __m512d {
        // SAFETY: the set runs here.
        unsafe { _mm512_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the set runs here.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the set runs here.
        unsafe { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the set runs here.
        unsafe { _mm512_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn larger(most: __m512d, x: __m512d) -> __m512d {
        // SAFETY: the set runs here.
        unsafe { _mm512_max_pd(most, _mm512_abs_pd(x)) }
    }
}
