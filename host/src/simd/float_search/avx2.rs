//! Float search, 8 values per vector: 64 lanes are eight vectors of f32, or sixteen of f64 in passes.

use std::arch::x86_64::*;

use super::vectors::Avx2;
use crate::simd::float_search::kernels::float_kernels;
use crate::simd::float_search::lanes::FloatSums;
use crate::simd::vectors::operations;

float_kernels!(
    Avx2, "avx2,f16c,fma",
    sums: 8 of 1,
    products: 4 x 2 of 1,
    norms: 2 x 4
);

impl FloatSums for Avx2 {
    const PARTIAL: bool = false;

    operations! {
        fn take(self, places: u64, new: __m256i, old: __m256i) -> __m256i {
            let lanes = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let taken = _mm256_and_si256(_mm256_set1_epi32(places as i32), lanes);
            _mm256_blendv_epi8(old, new, _mm256_cmpeq_epi32(taken, lanes))
        }
        fn halved(self, x: __m256i) -> f32 {
            let x = floats(x);
            let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
        fn doubles(self, x: __m256i) -> [__m256d; 2] {
            let x = floats(x);
            [
                _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)),
            ]
        }
        fn add_product_f64(self, sum: __m256d, a: __m256d, b: __m256d) -> __m256d {
            _mm256_fmadd_pd(a, b, sum)
        }
        fn take_f64(self, places: u64, new: __m256d, old: __m256d) -> __m256d {
            let lanes = _mm256_setr_epi64x(1, 2, 4, 8);
            let taken = _mm256_and_si256(_mm256_set1_epi64x(places as i64), lanes);
            let taken = _mm256_castsi256_pd(_mm256_cmpeq_epi64(taken, lanes));
            _mm256_blendv_pd(old, new, taken)
        }
        fn halved_f64(self, x: __m256d) -> f64 {
            let two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }
}

/// Converts patterns to floats.
#[inline]
#[target_feature(enable = "avx2")]
fn floats(patterns: __m256i) -> __m256 {
    _mm256_castsi256_ps(patterns)
}
