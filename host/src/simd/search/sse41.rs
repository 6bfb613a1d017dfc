//! Integer search, 8 values per vector.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use super::many_search;
use super::vectors::Sse41;
use crate::simd::search::dots::{DotProducts, dots_kernels, ones, within};
use crate::simd::search::passing::passing_kernel;
use crate::simd::search::{Many, SCALAR, Search};
use crate::simd::vectors::operations;

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

impl DotProducts for Sse41 {
    type Values = __m128i;
    type Sums = __m128i;
    type Squares = __m128i;
    const STEP: usize = 8;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(self, from: *const i8, _: usize) -> __m128i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm_cvtepi8_epi16(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn rest(self, from: *const i8, count: usize, readable: usize) -> __m128i {
        let mut copy = [0; 8];
        let ones = ones(2 * count).cast();
        // SAFETY: the set runs here; the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            _mm_and_si128(self.load(from, Self::STEP), _mm_loadu_si128(ones))
        }
    }

    operations! {
        fn start(self, value: i32) -> __m128i { _mm_cvtsi32_si128(value) }
        fn add_products(self, sums: __m128i, row: __m128i, query: __m128i) -> __m128i {
            _mm_add_epi32(sums, _mm_madd_epi16(row, query))
        }
        fn no_squares(self) -> __m128i { _mm_setzero_si128() }
        fn add_squares(self, squares: __m128i, row: __m128i) -> __m128i {
            self.add_products(squares, row, row)
        }
        fn squares(self, squares: __m128i) -> __m128i { squares }
    }

    #[inline(always)]
    fn totals(self, [a, b, c, d]: [__m128i; 4]) -> [i32; 4] {
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
}
