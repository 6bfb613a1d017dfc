//! Clustering, 4 points per vector, with `pmaddwd` on widened pairs.

use std::arch::x86_64::*;

use super::vectors::Sse41;
use crate::simd::cluster::products::{Format, Products};
use crate::simd::vectors::operations;

impl Products for Sse41 {
    type Vectors = Self;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    fn vectors(self) -> Self {
        self
    }

    operations! {
        fn operands(self, coordinates: __m128i) -> [__m128i; 2] {
            [_mm_srai_epi16::<8>(_mm_slli_epi16::<8>(coordinates)), _mm_srai_epi16::<8>(coordinates)]
        }
        /// Two products of at most 2¹⁴ do not saturate: `pmaddwd` has 32 bits for them.
        fn product(self, sum: __m128i, points: __m128i, centroid: __m128i) -> __m128i {
            _mm_add_epi32(sum, _mm_madd_epi16(points, centroid))
        }
    }
}

crate::simd::cluster::cluster_kernels!(Sse41, 2, "sse4.1");
