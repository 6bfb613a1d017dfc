//! Integer search, 16 values per vector.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use super::vectors::Avx2;
use super::{many_search, ternary_search};
use crate::simd::search::dots::{DotProducts, dots_kernels, ones, within};
use crate::simd::search::passing::passing_kernel;
use crate::simd::search::{Many, Search};
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
    ternary_dots: ternary_search::dots,
    ternary_norms: ternary_search::norms,
};

dots_kernels!(Avx2, "avx2,f16c,fma");
passing_kernel!(Avx2, "avx2,f16c,fma");

impl DotProducts for Avx2 {
    type Values = __m256i;
    type Sums = __m256i;
    type Squares = __m256i;
    const STEP: usize = 16;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(self, from: *const i8, _: usize) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn rest(self, from: *const i8, count: usize, readable: usize) -> __m256i {
        let mut copy = [0; 16];
        let ones = ones(2 * count).cast();
        // SAFETY: the set runs here; the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            _mm256_and_si256(self.load(from, Self::STEP), _mm256_loadu_si256(ones))
        }
    }

    operations! {
        fn start(self, value: i32) -> __m256i { _mm256_zextsi128_si256(_mm_cvtsi32_si128(value)) }
        fn add_products(self, sums: __m256i, row: __m256i, query: __m256i) -> __m256i {
            _mm256_add_epi32(sums, _mm256_madd_epi16(row, query))
        }
        fn no_squares(self) -> __m256i { _mm256_setzero_si256() }
        fn add_squares(self, squares: __m256i, row: __m256i) -> __m256i {
            self.add_products(squares, row, row)
        }
        fn squares(self, squares: __m256i) -> __m256i { squares }
        fn totals(self, sums: [__m256i; 4]) -> [i32; 4] { totals(sums) }
    }
}

/// Returns the total of each of four vectors, as a vector.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn total([a, b, c, d]: [__m256i; 4]) -> __m128i {
    let all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    _mm_add_epi32(
        _mm256_castsi256_si128(all),
        _mm256_extracti128_si256::<1>(all),
    )
}

/// Returns the total of each of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn totals(sums: [__m256i; 4]) -> [i32; 4] {
    let mut totals = [0; 4];
    // SAFETY: four sums have room.
    unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), total(sums)) };
    totals
}
