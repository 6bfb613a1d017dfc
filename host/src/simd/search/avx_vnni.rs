//! Dot products of one int8 query, 32 values per vector.
//!
//! As for AVX-512 VNNI: row + 128 as unsigned bytes times the query as signed ones, less 128 · Σq.

use std::arch::x86_64::*;

use super::cluster::AvxVnni;
use super::many_search;
use crate::simd::avx2;
use crate::simd::avx2::search::totals;
use crate::simd::search::dots::{DotProducts, dots_kernels, ones, within};
use crate::simd::search::{Many, Search};
use crate::simd::vectors::operations;

/// The kernels of integer search.
pub(in crate::simd) const KERNELS: Search = Search {
    dots,
    dots_and_norms,
    many: Some(Many {
        pack: many_search::pack,
        dots: many_search::dots,
    }),
    packed_len: many_search::packed_len,
    ..avx2::search::KERNELS
};

dots_kernels!(AvxVnni, "avx2,avxvnni,f16c,fma");

impl DotProducts for AvxVnni {
    type Values = __m256i;
    type Sums = __m256i;
    /// Σ (row + 128) · row and Σ row.
    type Squares = [__m256i; 2];
    const STEP: usize = 32;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 128;

    #[inline(always)]
    unsafe fn load(self, from: *const i8, _: usize) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn rest(self, from: *const i8, count: usize, readable: usize) -> __m256i {
        let mut copy = [0; 32];
        let ones = ones(count).cast();
        // SAFETY: the set runs here; the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            _mm256_and_si256(self.load(from, Self::STEP), _mm256_loadu_si256(ones))
        }
    }

    operations! {
        fn start(self, value: i32) -> __m256i { _mm256_zextsi128_si256(_mm_cvtsi32_si128(value)) }
        fn add_products(self, sums: __m256i, row: __m256i, query: __m256i) -> __m256i {
            _mm256_dpbusd_avx_epi32(sums, _mm256_xor_si256(row, _mm256_set1_epi8(-128)), query)
        }
        fn no_squares(self) -> [__m256i; 2] { [_mm256_setzero_si256(); 2] }
        fn add_squares(self, squares: [__m256i; 2], row: __m256i) -> [__m256i; 2] {
            let [squares, sums] = squares;
            [
                self.add_products(squares, row, row),
                _mm256_dpbusd_avx_epi32(sums, _mm256_set1_epi8(1), row),
            ]
        }
        fn squares(self, squares: [__m256i; 2]) -> __m256i {
            let [squares, sums] = squares;
            _mm256_sub_epi32(squares, _mm256_slli_epi32::<7>(sums))
        }
        fn totals(self, sums: [__m256i; 4]) -> [i32; 4] { totals(sums) }
    }
}
