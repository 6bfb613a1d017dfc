//! Dot products of one int8 query, 64 values per vector.
//!
//! `VPDPBUSD` multiplies unsigned bytes by signed ones: row + 128 (the sign bit flipped) by the query gives the dot
//! product and 128 · Σq, which is the same for all rows. Four products of a lane stay below 2¹⁷, and lanes wrap as the
//! reference does.

use std::arch::x86_64::*;

use super::cluster::Avx512Vnni;
use super::{many_search, ternary_search};
use crate::simd::avx512;
use crate::simd::avx512::search::totals;
use crate::simd::search::dots::{DotProducts, dots_kernels};
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
    ternary_dots: ternary_search::dots,
    ternary_norms: ternary_search::norms,
    ..avx512::search::KERNELS
};

dots_kernels!(Avx512Vnni, "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");

impl DotProducts for Avx512Vnni {
    type Values = __m512i;
    type Sums = __m512i;
    /// Σ (row + 128) · row and Σ row.
    type Squares = [__m512i; 2];
    const STEP: usize = 64;
    const PARTIAL: bool = true;
    const ABOVE: i32 = 128;

    /// Uses a mask at each step, as for AVX-512.
    #[inline(always)]
    unsafe fn load(self, from: *const i8, left: usize) -> __m512i {
        let mask = u64::MAX >> (64 - left.min(64));
        // SAFETY: the set runs here; the caller's promise about so many values.
        unsafe { _mm512_maskz_loadu_epi8(mask, from) }
    }

    operations! {
        fn start(self, value: i32) -> __m512i { _mm512_zextsi128_si512(_mm_cvtsi32_si128(value)) }
        fn add_products(self, sums: __m512i, row: __m512i, query: __m512i) -> __m512i {
            _mm512_dpbusd_epi32(sums, _mm512_xor_si512(row, _mm512_set1_epi8(-128)), query)
        }
        fn no_squares(self) -> [__m512i; 2] { [_mm512_setzero_si512(); 2] }
        fn add_squares(self, squares: [__m512i; 2], row: __m512i) -> [__m512i; 2] {
            let [squares, sums] = squares;
            [
                self.add_products(squares, row, row),
                _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), row),
            ]
        }
        fn squares(self, squares: [__m512i; 2]) -> __m512i {
            let [squares, sums] = squares;
            _mm512_sub_epi32(squares, _mm512_slli_epi32::<7>(sums))
        }
        fn totals(self, sums: [__m512i; 4]) -> [i32; 4] { totals(sums) }
    }
}
