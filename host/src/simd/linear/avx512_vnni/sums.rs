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

/// The exact sum of a row's blocks, sixteen at a time, with activations in `P` planes.
///
/// Only functions that are compiled for the set use these.
pub(super) trait Total<const P: usize>: Copy {
    /// The sum.
    type Sum;

    /// Returns a sum of 0.
    unsafe fn none() -> Self;
    /// Returns the products with whole activations.
    unsafe fn together(planes: [__m512i; P]) -> __m512i;
    /// Adds dot · scale of each block; the scales are patterns of f16.
    unsafe fn add(&mut self, dots: __m512i, scales: __m256i);
    /// Returns the sum.
    unsafe fn sum(self) -> Self::Sum;
}

/// Sums of 62 bits, in units of 2⁻²⁴.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    low: __m512i,
    high: __m512i,
}

impl Total<1> for Scaled {
    type Sum = i64;

    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: the caller has the set.
        let zero = unsafe { _mm512_setzero_si512() };
        Self {
            low: zero,
            high: zero,
        }
    }

    #[inline(always)]
    unsafe fn together([dots]: [__m512i; 1]) -> __m512i {
        dots
    }

    /// The scale of f16 times 2²⁴ is a whole number below 2⁴⁰, and exact in f32; a matrix refuses rows whose sums could
    /// leave 62 bits.
    #[inline(always)]
    unsafe fn add(&mut self, dots: __m512i, scales: __m256i) {
        // SAFETY: the caller has the set.
        unsafe {
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
    }

    #[inline(always)]
    unsafe fn sum(self) -> i64 {
        // SAFETY: the caller has the set.
        unsafe { _mm512_reduce_add_epi64(_mm512_add_epi64(self.low, self.high)) }
    }
}

/// Sums in f64, which are exact where they take fewer than 53 bits; see [`crate::simd::linear::halves`].
#[derive(Clone, Copy)]
pub(super) struct Floats([__m512d; 2]);

impl Total<2> for Floats {
    type Sum = f64;

    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: the caller has the set.
        unsafe { Self([_mm512_setzero_pd(); 2]) }
    }

    /// Below 2²⁸ in magnitude: a block's codes and activations are at most 32 · 255 · 32,512.
    #[inline(always)]
    unsafe fn together([high, low]: [__m512i; 2]) -> __m512i {
        // SAFETY: the caller has the set.
        unsafe {
            let above = _mm512_sub_epi32(_mm512_slli_epi32::<8>(high), high);
            _mm512_add_epi32(above, low)
        }
    }

    #[inline(always)]
    unsafe fn add(&mut self, dots: __m512i, scales: __m256i) {
        // SAFETY: the caller has the set.
        unsafe {
            let scales = _mm512_cvtph_ps(scales);
            let halves = [
                (_mm512_castsi512_si256(dots), _mm512_castps512_ps256(scales)),
                (
                    _mm512_extracti64x4_epi64::<1>(dots),
                    _mm512_extractf32x8_ps::<1>(scales),
                ),
            ];
            for (total, (dots, scales)) in self.0.iter_mut().zip(halves) {
                let (dots, scales) = (_mm512_cvtepi32_pd(dots), _mm512_cvtps_pd(scales));
                *total = _mm512_fmadd_pd(dots, scales, *total);
            }
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f64 {
        // SAFETY: the caller has the set.
        unsafe { _mm512_reduce_add_pd(_mm512_add_pd(self.0[0], self.0[1])) }
    }
}
