//! Clustering, 8 points per vector, with `vpdpbusd`.

use std::arch::x86_64::*;

use crate::simd::avx2::vectors::Avx2;
use crate::simd::cluster::products::{Format, Products};
use crate::simd::vectors::operations;

/// [`Avx2`]'s vectors, with byte products.
#[derive(Clone, Copy)]
pub(in crate::simd) struct AvxVnni(Avx2);

impl AvxVnni {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx2,avxvnni,f16c,fma")]
    pub(in crate::simd) fn here() -> Self {
        Self(Avx2::here())
    }
}

impl Products for AvxVnni {
    type Vectors = Avx2;
    const FORMAT: Format = Format::Unsigned;

    #[inline(always)]
    fn vectors(self) -> Avx2 {
        self.0
    }

    #[inline(always)]
    fn operands(self, coordinates: __m256i) -> [__m256i; 2] {
        [coordinates; 2]
    }

    operations! {
        /// Four products of at most 255 · 128 in magnitude; `vpdpbusd` wraps and does not saturate.
        fn product(self, sum: __m256i, points: __m256i, centroid: __m256i) -> __m256i {
            _mm256_dpbusd_avx_epi32(sum, centroid, points)
        }
    }
}

crate::simd::cluster::cluster_kernels!(AvxVnni, 2, "avx2,avxvnni,f16c,fma");
