//! Integer search, 8 values a vector.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use super::cluster::Sse41;
use super::many_search;
use crate::simd::search::dots::{Lanes, dots_kernels, ones, within};
use crate::simd::search::passing::{Compare, passing_kernel};
use crate::simd::search::{Many, SCALAR, Search};

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
    ..SCALAR
};

dots_kernels!(Sse41, "sse4.1");
passing_kernel!(Sse41, "sse4.1");

impl Lanes for Sse41 {
    type Values = __m128i;
    type Sums = __m128i;
    type Squares = __m128i;
    const STEP: usize = 8;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(from: *const i8, _: usize) -> __m128i {
        // SAFETY: the caller's promise.
        unsafe { _mm_cvtepi8_epi16(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn rest(from: *const i8, count: usize, readable: usize) -> __m128i {
        let mut copy = [0; 8];
        let ones = ones(2 * count).cast();
        // SAFETY: the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            _mm_and_si128(
                <Self as Lanes>::load(from, Self::STEP),
                _mm_loadu_si128(ones),
            )
        }
    }

    #[inline(always)]
    unsafe fn start(value: i32) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_cvtsi32_si128(value) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: __m128i, row: __m128i, query: __m128i) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_add_epi32(sums, _mm_madd_epi16(row, query)) }
    }

    #[inline(always)]
    unsafe fn no_squares() -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    unsafe fn add_squares(squares: __m128i, row: __m128i) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { Self::add_products(squares, row, row) }
    }

    #[inline(always)]
    unsafe fn squares(squares: __m128i) -> __m128i {
        squares
    }

    #[inline(always)]
    unsafe fn totals([a, b, c, d]: [__m128i; 4]) -> [i32; 4] {
        let mut totals = [0; 4];
        // SAFETY: the set runs here; four sums have room.
        unsafe {
            let ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            let all = _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
            _mm_storeu_si128(totals.as_mut_ptr().cast(), all);
        }
        totals
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }
}

impl Compare for Sse41 {
    type Vector = __m128i;
    const WIDTH: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m128i {
        // SAFETY: the caller's promise.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn exceeds(a: __m128i, b: __m128i) -> u64 {
        // SAFETY: the set runs here.
        unsafe { bits(_mm_cmpgt_epi32(a, b)) }
    }

    #[inline(always)]
    unsafe fn reaches(dots: __m128i, norms: __m128i, square: f32) -> u64 {
        // SAFETY: the set runs here.
        unsafe {
            let x = _mm_cvtepi32_ps(dots);
            let squares = _mm_mul_ps(x, _mm_andnot_ps(_mm_set1_ps(-0.0), x));
            let bars = _mm_mul_ps(_mm_cvtepi32_ps(norms), _mm_set1_ps(square));
            bits(_mm_castps_si128(_mm_cmpge_ps(squares, bars)))
        }
    }
}

/// The sign of each lane.
#[inline]
#[target_feature(enable = "sse4.1")]
fn bits(lanes: __m128i) -> u64 {
    u64::from(_mm_movemask_ps(_mm_castsi128_ps(lanes)).cast_unsigned())
}
