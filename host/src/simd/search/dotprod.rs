//! Dot products of one int8 query, 16 values per vector, with `sdot`.

use std::arch::aarch64::*;

use super::cluster::DotProd;
use super::many_search;
use crate::simd::cluster::products::Products;
use crate::simd::neon;
use crate::simd::neon::vectors::Neon;
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
    ..neon::search::KERNELS
};

dots_kernels!(DotProd, "neon,dotprod");

impl DotProducts for DotProd {
    type Values = int8x16_t;
    type Sums = int32x4_t;
    type Squares = int32x4_t;
    const STEP: usize = 16;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(self, from: *const i8, _: usize) -> int8x16_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { self.vectors().load(from, Self::STEP) }
    }

    #[inline(always)]
    unsafe fn rest(self, from: *const i8, count: usize, readable: usize) -> int8x16_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { self.vectors().rest(from, count, readable) }
    }

    operations! {
        fn start(self, value: i32) -> int32x4_t { self.vectors().start(value) }
        fn add_products(self, sums: int32x4_t, row: int8x16_t, query: int8x16_t) -> int32x4_t {
            let (row, query) = (vreinterpretq_s32_s8(row), vreinterpretq_s32_s8(query));
            self.product(sums, row, query)
        }
        fn no_squares(self) -> int32x4_t { self.vectors().no_squares() }
        fn add_squares(self, squares: int32x4_t, row: int8x16_t) -> int32x4_t {
            self.add_products(squares, row, row)
        }
        fn squares(self, squares: int32x4_t) -> int32x4_t { squares }
        fn totals(self, sums: [int32x4_t; 4]) -> [i32; 4] { DotProducts::totals(self.vectors(), sums) }
    }
}
