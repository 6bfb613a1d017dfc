//! Integer search, 32 values per vector.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use super::many_search;
use super::vectors::Avx512;
use crate::simd::avx2;
use crate::simd::search::dots::{DotProducts, dots_kernels};
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
    ..avx2::search::KERNELS
};

dots_kernels!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl");
passing_kernel!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl");

impl DotProducts for Avx512 {
    type Values = __m512i;
    type Sums = __m512i;
    type Squares = __m512i;
    const STEP: usize = 32;
    const PARTIAL: bool = true;
    const ABOVE: i32 = 0;

    /// Uses a mask at each step: such loads do not trigger the processor's own prefetches, which follow each row
    /// separately and displace the lines that are prefetched in order (Zen 5: 34 GB/s from memory instead of 21 to 30).
    #[inline(always)]
    unsafe fn load(self, from: *const i8, left: usize) -> __m512i {
        let mask = u32::MAX >> (32 - left.min(32));
        // SAFETY: the set runs here; the caller's promise about so many values.
        unsafe { _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, from)) }
    }

    operations! {
        fn start(self, value: i32) -> __m512i { _mm512_zextsi128_si512(_mm_cvtsi32_si128(value)) }
        fn add_products(self, sums: __m512i, row: __m512i, query: __m512i) -> __m512i {
            _mm512_add_epi32(sums, _mm512_madd_epi16(row, query))
        }
        fn no_squares(self) -> __m512i { _mm512_setzero_si512() }
        fn add_squares(self, squares: __m512i, row: __m512i) -> __m512i {
            self.add_products(squares, row, row)
        }
        fn squares(self, squares: __m512i) -> __m512i { squares }
        fn totals(self, sums: [__m512i; 4]) -> [i32; 4] { totals(sums) }
    }
}

/// Returns the total of each of four vectors, as a vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::simd) fn total([a, b, c, d]: [__m512i; 4]) -> __m128i {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    // Each quarter now has a part of a, b, c and d.
    let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let half = _mm256_add_epi32(
        _mm512_castsi512_si256(all),
        _mm512_extracti64x4_epi64::<1>(all),
    );
    _mm_add_epi32(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    )
}

/// Returns the total of each of four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::simd) fn totals(sums: [__m512i; 4]) -> [i32; 4] {
    let mut totals = [0; 4];
    // SAFETY: four sums have room.
    unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), total(sums)) };
    totals
}
