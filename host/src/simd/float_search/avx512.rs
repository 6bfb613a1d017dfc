//! Float search, 16 values per vector: 64 lanes are four vectors of f32, or eight of f64.

use std::arch::x86_64::*;

use tercet_core::{bf16, f16};

use super::vectors::Avx512;
use crate::simd::float_search::kernels::float_kernels;
use crate::simd::float_search::lanes::FloatSums;
use crate::simd::vectors::operations;

float_kernels!(
    Avx512, "avx512f,avx512bw,avx512dq,avx512vl",
    sums: 4 of 4,
    products: 4 x 1 of 2,
    norms: 4 x 1
);

/// All loads use masks, as those of integer search.
impl FloatSums for Avx512 {
    const PARTIAL: bool = true;

    #[inline(always)]
    unsafe fn read_f32(self, at: *const f32, places: u64) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_castps_si512(_mm512_maskz_loadu_ps(places as __mmask16, at)) }
    }

    #[inline(always)]
    unsafe fn read_f16(self, at: *const f16, places: u64) -> __m512i {
        // SAFETY: the set runs here; the caller's promise; an f16 is its 16 bits.
        unsafe {
            let halves = _mm256_maskz_loadu_epi16(places as __mmask16, at.cast());
            _mm512_castps_si512(_mm512_cvtph_ps(halves))
        }
    }

    #[inline(always)]
    unsafe fn read_bf16(self, at: *const bf16, places: u64) -> __m512i {
        // SAFETY: the set runs here; the caller's promise; a bf16 is its 16 bits, the upper half of an f32.
        unsafe {
            let halves = _mm256_maskz_loadu_epi16(places as __mmask16, at.cast());
            _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves))
        }
    }

    operations! {
        fn take(self, places: u64, new: __m512i, old: __m512i) -> __m512i {
            _mm512_castps_si512(_mm512_mask_mov_ps(
                floats(old),
                places as __mmask16,
                floats(new),
            ))
        }
        fn halved(self, x: __m512i) -> f32 {
            let x = floats(x);
            let eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps::<1>(x));
            let four = _mm_add_ps(
                _mm256_castps256_ps128(eight),
                _mm256_extractf128_ps::<1>(eight),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
        fn doubles(self, x: __m512i) -> [__m512d; 2] {
            let x = floats(x);
            [
                _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
                _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(x)),
            ]
        }
        fn add_product_f64(self, sum: __m512d, a: __m512d, b: __m512d) -> __m512d {
            _mm512_fmadd_pd(a, b, sum)
        }
        fn take_f64(self, places: u64, new: __m512d, old: __m512d) -> __m512d {
            _mm512_mask_mov_pd(old, places as __mmask8, new)
        }
        fn halved_f64(self, x: __m512d) -> f64 {
            let four = _mm256_add_pd(_mm512_castpd512_pd256(x), _mm512_extractf64x4_pd::<1>(x));
            let two = _mm_add_pd(
                _mm256_castpd256_pd128(four),
                _mm256_extractf128_pd::<1>(four),
            );
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
}

/// Converts patterns to floats.
#[inline]
#[target_feature(enable = "avx512f")]
fn floats(patterns: __m512i) -> __m512 {
    _mm512_castsi512_ps(patterns)
}
