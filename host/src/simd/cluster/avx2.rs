//! Clustering, 8 points per vector, with `vpmaddwd` on widened pairs.

use std::arch::x86_64::*;

use super::vectors::Avx2;
use crate::simd::cluster::products::{Format, Products};
use crate::simd::vectors::operations;

impl Products for Avx2 {
    type Vectors = Self;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    fn vectors(self) -> Self {
        self
    }

    operations! {
        fn operands(self, coordinates: __m256i) -> [__m256i; 2] {
            [_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(coordinates)), _mm256_srai_epi16::<8>(coordinates)]
        }
        /// Two products of at most 2¹⁴ do not saturate: `vpmaddwd` has 32 bits for them.
        fn product(self, sum: __m256i, points: __m256i, centroid: __m256i) -> __m256i {
            _mm256_add_epi32(sum, _mm256_madd_epi16(points, centroid))
        }
    }
}

crate::simd::cluster::cluster_kernels!(Avx2, 2, "avx2,f16c,fma");
