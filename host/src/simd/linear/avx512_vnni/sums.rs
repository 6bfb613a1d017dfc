//! Sums the lanes of vectors.

use std::arch::x86_64::*;

pub(super) use crate::simd::avx512::linear::folds::{fold_four, fold_fours};

/// Returns the four sums of a folded vector: of its lanes r, r + 4, r + 8, r + 12.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn four_sums(folded: __m512i) -> __m128i {
    let half = _mm256_add_epi32(
        _mm512_castsi512_si256(folded),
        _mm512_extracti64x4_epi64::<1>(folded),
    );
    _mm_add_epi32(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    )
}

/// Stores four sums, or as many as there is room for.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn store_four(sums: __m128i, out: &mut [i32]) {
    let mask = 0b1111 >> 4usize.saturating_sub(out.len());
    // SAFETY: the mask selects what there is room for.
    unsafe { _mm_mask_storeu_epi32(out.as_mut_ptr(), mask, sums) };
}

/// The exact sum of a row's blocks, sixteen at a time.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    low: __m512i,
    high: __m512i,
}

impl Scaled {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new() -> Self {
        let zero = _mm512_setzero_si512();
        Self {
            low: zero,
            high: zero,
        }
    }

    /// Adds dot · d · 2²⁴ of each block. The scale of f16 times 2²⁴ is a whole number below 2⁴⁰, and exact in f32; a
    /// matrix refuses rows whose sums could leave 62 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn add(&mut self, dots: __m512i, scales: __m256i) {
        let scales = _mm512_cvtph_ps(scales);
        let scales = _mm512_mul_ps(scales, _mm512_set1_ps(16_777_216.0));
        let low = _mm512_mullo_epi64(
            _mm512_cvtepi32_epi64(_mm512_castsi512_si256(dots)),
            _mm512_cvttps_epi64(_mm512_castps512_ps256(scales)),
        );
        let high = _mm512_mullo_epi64(
            _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(dots)),
            _mm512_cvttps_epi64(_mm512_extractf32x8_ps::<1>(scales)),
        );
        self.low = _mm512_add_epi64(self.low, low);
        self.high = _mm512_add_epi64(self.high, high);
    }

    /// Returns the total.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn total(self) -> i64 {
        _mm512_reduce_add_epi64(_mm512_add_epi64(self.low, self.high))
    }
}
