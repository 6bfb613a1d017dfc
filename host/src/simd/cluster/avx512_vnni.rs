//! Clustering, 16 points per vector, with `vpdpbusd`.

use std::arch::x86_64::*;

use crate::simd::avx512::vectors::Avx512;
use crate::simd::cluster::products::{Format, Products};
use crate::simd::vectors::operations;

/// [`Avx512`]'s vectors, with byte products.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Avx512Vnni(Avx512);

impl Avx512Vnni {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(in crate::simd) fn here() -> Self {
        Self(Avx512::here())
    }
}

impl Products for Avx512Vnni {
    type Vectors = Avx512;
    const FORMAT: Format = Format::Unsigned;

    #[inline(always)]
    fn vectors(self) -> Avx512 {
        self.0
    }

    #[inline(always)]
    fn operands(self, coordinates: __m512i) -> [__m512i; 2] {
        [coordinates; 2]
    }

    operations! {
        /// Four products of at most 255 · 128 in magnitude; `vpdpbusd` wraps and does not saturate.
        fn product(self, sum: __m512i, points: __m512i, centroid: __m512i) -> __m512i {
            _mm512_dpbusd_epi32(sum, centroid, points)
        }
    }
}

crate::simd::cluster::cluster_kernels!(
    Avx512Vnni,
    4,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
);
