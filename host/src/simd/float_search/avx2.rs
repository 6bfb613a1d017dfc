//! Float search, 8 values a vector: 64 lanes are eight vectors of f32, or sixteen of f64 in passes.

use std::arch::x86_64::*;

use super::quantize::Avx2;
use crate::simd::float_search::kernels::float_kernels;
use crate::simd::float_search::lanes::Lanes;

float_kernels!(
    Avx2, "avx2,f16c,fma",
    sums: 8 of 1,
    products: 4 x 2 of 1,
    norms: 2 x 4
);

impl Lanes for Avx2 {
    const PARTIAL: bool = false;

    #[inline(always)]
    unsafe fn plus(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_castps_si256(_mm256_add_ps(floats(a), floats(b))) }
    }

    #[inline(always)]
    unsafe fn minus(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_castps_si256(_mm256_sub_ps(floats(a), floats(b))) }
    }

    #[inline(always)]
    unsafe fn select(set: u64, new: __m256i, old: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe {
            let places = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let taken = _mm256_and_si256(_mm256_set1_epi32(set as i32), places);
            _mm256_blendv_epi8(old, new, _mm256_cmpeq_epi32(taken, places))
        }
    }

    #[inline(always)]
    unsafe fn halved(x: __m256i) -> f32 {
        // SAFETY: the set runs here.
        unsafe {
            let x = floats(x);
            let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn no_products() -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_set1_pd(-0.0) }
    }

    #[inline(always)]
    unsafe fn doubles(x: __m256i) -> [__m256d; 2] {
        // SAFETY: the set runs here.
        unsafe {
            let x = floats(x);
            [
                _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn plus_product(sum: __m256d, a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_fmadd_pd(a, b, sum) }
    }

    #[inline(always)]
    unsafe fn plus_wide(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn select_wide(set: u64, new: __m256d, old: __m256d) -> __m256d {
        // SAFETY: the set runs here.
        unsafe {
            let places = _mm256_setr_epi64x(1, 2, 4, 8);
            let taken = _mm256_and_si256(_mm256_set1_epi64x(set as i64), places);
            let taken = _mm256_castsi256_pd(_mm256_cmpeq_epi64(taken, places));
            _mm256_blendv_pd(old, new, taken)
        }
    }

    #[inline(always)]
    unsafe fn halved_wide(x: __m256d) -> f64 {
        // SAFETY: the set runs here.
        unsafe {
            let two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }
}

/// Patterns as floats.
#[inline]
#[target_feature(enable = "avx2")]
fn floats(patterns: __m256i) -> __m256 {
    _mm256_castsi256_ps(patterns)
}
