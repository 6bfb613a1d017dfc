//! Clustering, 16 points per vector, with `vpmaddwd` on widened pairs.

use std::arch::x86_64::*;

use super::vectors::Avx512;
use crate::simd::cluster::products::{Format, Products};
use crate::simd::vectors::operations;

impl Products for Avx512 {
    type Vectors = Self;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    fn vectors(self) -> Self {
        self
    }

    operations! {
        fn operands(self, coordinates: __m512i) -> [__m512i; 2] {
            [_mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(coordinates)), _mm512_srai_epi16::<8>(coordinates)]
        }
        /// Two products of at most 2¹⁴ do not saturate: `vpmaddwd` has 32 bits for them.
        fn product(self, sum: __m512i, points: __m512i, centroid: __m512i) -> __m512i {
            _mm512_add_epi32(sum, _mm512_madd_epi16(points, centroid))
        }
    }
}

crate::simd::cluster::cluster_kernels!(Avx512, 4, "avx512f,avx512bw,avx512dq,avx512vl");
