//! The exact sum of blocks' products, 16 blocks at a time.

use std::arch::x86_64::*;

use crate::simd::blocks::dot::{Terms, half};

/// Blocks at a time.
pub(super) const STEP: usize = 16;

/// The upper and the lower halves of terms of 64 bits. A term has at most 30 significant bits, so f64 represents it.
#[derive(Clone, Copy)]
pub(super) struct Sixteen {
    upper: __m512i,
    lower: __m512i,
    /// Scales with all ones in the exponent: infinity or NaN.
    wide: __mmask16,
}

impl Terms for Sixteen {
    type Dots = __m512i;

    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: the set runs here.
        let none = unsafe { _mm512_setzero_si512() };
        Self {
            upper: none,
            lower: none,
            wide: 0,
        }
    }

    #[inline(always)]
    unsafe fn plus(mut self, dots: __m512i, scales: *const u8, apart: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let exponent = _mm256_set1_epi16(0x7C00);
            let halves = halves(scales, apart);
            self.wide |= _mm256_cmpeq_epi16_mask(_mm256_and_si256(halves, exponent), exponent);
            let scales = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(16_777_216.0));
            let eights = [
                (_mm512_castps512_ps256(scales), _mm512_castsi512_si256(dots)),
                (
                    _mm512_extractf32x8_ps::<1>(scales),
                    _mm512_extracti64x4_epi64::<1>(dots),
                ),
            ];
            for (scales, dots) in eights {
                let terms = _mm512_mul_pd(_mm512_cvtps_pd(scales), _mm512_cvtepi32_pd(dots));
                let terms = _mm512_cvtpd_epi64(terms);
                self.upper = _mm512_add_epi64(self.upper, _mm512_srai_epi64::<32>(terms));
                let low = _mm512_and_si512(terms, _mm512_set1_epi64(0xFFFF_FFFF));
                self.lower = _mm512_add_epi64(self.lower, low);
            }
        }
        self
    }

    #[inline(always)]
    unsafe fn total(self) -> Option<i128> {
        if self.wide != 0 {
            return None;
        }
        // SAFETY: the set runs here.
        let (upper, lower) = unsafe {
            (
                _mm512_reduce_add_epi64(self.upper),
                _mm512_reduce_add_epi64(self.lower),
            )
        };
        Some((i128::from(upper) << 32) + i128::from(lower))
    }
}

/// Returns the scales in their stored form.
///
/// # Safety
/// 16 scales lie there; the set runs here.
#[inline(always)]
unsafe fn halves(at: *const u8, apart: usize) -> __m256i {
    macro_rules! halves {
        ($($block:literal)*) => {
            // SAFETY: the caller's promise.
            unsafe { _mm256_setr_epi16($(half(at.add($block * apart)).cast_signed()),*) }
        };
    }
    halves!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}

/// Returns the sum of each vector's lanes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn totals(v: [__m512i; 16]) -> __m512i {
    let fours = [
        four([v[0], v[1], v[2], v[3]]),
        four([v[4], v[5], v[6], v[7]]),
        four([v[8], v[9], v[10], v[11]]),
        four([v[12], v[13], v[14], v[15]]),
    ];
    quarters(quarters(fours[0], fours[1]), quarters(fours[2], fours[3]))
}

/// Returns the sum of the lanes of each vector's lower and upper half, in order.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn totals_of_halves(v: [__m512i; 8]) -> __m512i {
    let low = four([v[0], v[1], v[2], v[3]]);
    let high = four([v[4], v[5], v[6], v[7]]);
    // The lower halves of four vectors, their upper halves, and the same again.
    let order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    _mm512_permutexvar_epi32(order, quarters(low, high))
}

/// Returns in each quarter the sums of that quarter's lanes of each vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn four([a, b, c, d]: [__m512i; 4]) -> __m512i {
    let two = |a, b| {
        // a0 + a2, b0 + b2, a1 + a3, b1 + b3.
        _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b))
    };
    let (ab, cd) = (two(a, b), two(c, d));
    _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd))
}

/// Returns the sums of neighbouring quarters, of `a` and then of `b`.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(
        _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
        _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
    )
}
