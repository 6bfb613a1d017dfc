//! Dot products of one int8 query, 16 values a vector, by `sdot`.

use std::arch::aarch64::*;

use super::cluster::DotProd;
use super::many_search;
use crate::simd::cluster::lanes::Lanes as Points;
use crate::simd::neon;
use crate::simd::neon::cluster::Neon;
use crate::simd::search::dots::{Lanes, dots_kernels};
use crate::simd::search::{Many, Search};

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

impl Lanes for DotProd {
    type Values = int8x16_t;
    type Sums = int32x4_t;
    type Squares = int32x4_t;
    const STEP: usize = 16;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(from: *const i8, _: usize) -> int8x16_t {
        // SAFETY: the caller's promise.
        unsafe { <Neon as Lanes>::load(from, Self::STEP) }
    }

    #[inline(always)]
    unsafe fn rest(from: *const i8, count: usize, readable: usize) -> int8x16_t {
        // SAFETY: the caller's promise.
        unsafe { Neon::rest(from, count, readable) }
    }

    #[inline(always)]
    unsafe fn start(value: i32) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { Neon::start(value) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: int32x4_t, row: int8x16_t, query: int8x16_t) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe {
            let (row, query) = (vreinterpretq_s32_s8(row), vreinterpretq_s32_s8(query));
            <Self as Points>::product(sums, row, query)
        }
    }

    #[inline(always)]
    unsafe fn no_squares() -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { Neon::no_squares() }
    }

    #[inline(always)]
    unsafe fn add_squares(squares: int32x4_t, row: int8x16_t) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { Self::add_products(squares, row, row) }
    }

    #[inline(always)]
    unsafe fn squares(squares: int32x4_t) -> int32x4_t {
        squares
    }

    #[inline(always)]
    unsafe fn totals(sums: [int32x4_t; 4]) -> [i32; 4] {
        // SAFETY: the set runs here.
        unsafe { Neon::totals(sums) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { <Neon as Lanes>::prefetch(at) }
    }
}
