//! Integer search, 16 values a vector.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use super::cluster::Avx2;
use super::{many_search, ternary_search};
use crate::simd::search::dots::{Lanes, dots_kernels, ones, within};
use crate::simd::search::passing::{Compare, passing_kernel};
use crate::simd::search::{Many, Search};

/// The kernels of integer search.
pub(in crate::simd) const KERNELS: Search = Search {
    dots,
    dots_and_norms,
    passing,
    many: Some(Many {
        pack: many_search::pack,
        dots: many_search::dots,
    }),
    packed_len: many_search::packed_len,
    ternary_dots: ternary_search::dots,
    ternary_norms: ternary_search::norms,
};

dots_kernels!(Avx2, "avx2");
passing_kernel!(Avx2, "avx2");

impl Lanes for Avx2 {
    type Values = __m256i;
    type Sums = __m256i;
    type Squares = __m256i;
    const STEP: usize = 16;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(from: *const i8, _: usize) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn rest(from: *const i8, count: usize, readable: usize) -> __m256i {
        let mut copy = [0; 16];
        let ones = ones(2 * count).cast();
        // SAFETY: the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            _mm256_and_si256(
                <Self as Lanes>::load(from, Self::STEP),
                _mm256_loadu_si256(ones),
            )
        }
    }

    #[inline(always)]
    unsafe fn start(value: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_zextsi128_si256(_mm_cvtsi32_si128(value)) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: __m256i, row: __m256i, query: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(row, query)) }
    }

    #[inline(always)]
    unsafe fn no_squares() -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn add_squares(squares: __m256i, row: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { Self::add_products(squares, row, row) }
    }

    #[inline(always)]
    unsafe fn squares(squares: __m256i) -> __m256i {
        squares
    }

    #[inline(always)]
    unsafe fn totals(sums: [__m256i; 4]) -> [i32; 4] {
        // SAFETY: the set runs here.
        unsafe { totals(sums) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }
}

/// The total of each of four vectors, as a vector.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn total([a, b, c, d]: [__m256i; 4]) -> __m128i {
    let all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    _mm_add_epi32(
        _mm256_castsi256_si128(all),
        _mm256_extracti128_si256::<1>(all),
    )
}

/// The total of each of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn totals(sums: [__m256i; 4]) -> [i32; 4] {
    let mut totals = [0; 4];
    // SAFETY: four sums have room.
    unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), total(sums)) };
    totals
}

impl Compare for Avx2 {
    type Vector = __m256i;
    const WIDTH: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn exceeds(a: __m256i, b: __m256i) -> u64 {
        // SAFETY: the set runs here.
        unsafe { bits(_mm256_cmpgt_epi32(a, b)) }
    }

    #[inline(always)]
    unsafe fn reaches(dots: __m256i, norms: __m256i, square: f32) -> u64 {
        // SAFETY: the set runs here.
        unsafe {
            let x = _mm256_cvtepi32_ps(dots);
            let squares = _mm256_mul_ps(x, _mm256_andnot_ps(_mm256_set1_ps(-0.0), x));
            let bars = _mm256_mul_ps(_mm256_cvtepi32_ps(norms), _mm256_set1_ps(square));
            bits(_mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(
                squares, bars,
            )))
        }
    }
}

/// The sign of each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(lanes: __m256i) -> u64 {
    u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)).cast_unsigned())
}
