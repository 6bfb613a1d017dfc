//! Comparisons of tensors in lanes of 256 bits.

use std::arch::x86_64::*;

use tercet_core::quant::RowSums;

use crate::simd::compare::{self, Lanes, Row};

/// As the table says.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(a: &[Row], b: &[Row], sums: &mut RowSums) -> f64 {
    // SAFETY: the set runs here; who calls has as many rows in both.
    unsafe { compare::rows::<Avx2>(a, b, sums) }
}

/// 4 lanes.
struct Avx2;

impl Lanes for Avx2 {
    type Vector = __m256d;
    const WIDTH: usize = 4;

    #[inline(always)]
    unsafe fn widen(at: *const f32) -> __m256d {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(at)) }
    }

    #[inline(always)]
    unsafe fn load(at: *const f64) -> __m256d {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_pd(at) }
    }

    #[inline(always)]
    unsafe fn store(x: __m256d, at: *mut f64) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_pd(at, x) }
    }

    #[inline(always)]
    unsafe fn zeros() -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn larger(most: __m256d, x: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_max_pd(most, _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)) }
    }
}
