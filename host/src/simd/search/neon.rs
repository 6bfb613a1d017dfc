//! Integer search, 16 values per vector.
//!
//! A product of two bytes fits 16 bits; `SADALP` adds pairs of them to 32 bits, so nothing saturates.

use std::arch::aarch64::*;

use super::many_search;
use super::vectors::Neon;
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

dots_kernels!(Neon, "neon");
passing_kernel!(Neon, "neon");

impl DotProducts for Neon {
    type Values = int8x16_t;
    type Sums = int32x4_t;
    type Squares = int32x4_t;
    const STEP: usize = 16;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(self, from: *const i8, _: usize) -> int8x16_t {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { vld1q_s8(from) }
    }

    #[inline(always)]
    unsafe fn rest(self, from: *const i8, count: usize, readable: usize) -> int8x16_t {
        let mut copy = [0; 16];
        let ones = ones(count).cast();
        // SAFETY: the set runs here; the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            vandq_s8(self.load(from, Self::STEP), vld1q_s8(ones))
        }
    }

    operations! {
        fn start(self, value: i32) -> int32x4_t { vsetq_lane_s32::<0>(value, vdupq_n_s32(0)) }
        fn add_products(self, sums: int32x4_t, row: int8x16_t, query: int8x16_t) -> int32x4_t {
            let low = vmull_s8(vget_low_s8(row), vget_low_s8(query));
            vpadalq_s16(vpadalq_s16(sums, low), vmull_high_s8(row, query))
        }
        fn no_squares(self) -> int32x4_t { vdupq_n_s32(0) }
        fn add_squares(self, squares: int32x4_t, row: int8x16_t) -> int32x4_t {
            self.add_products(squares, row, row)
        }
        fn squares(self, squares: int32x4_t) -> int32x4_t { squares }
    }

    #[inline(always)]
    fn totals(self, [a, b, c, d]: [int32x4_t; 4]) -> [i32; 4] {
        let mut totals = [0; 4];
        // SAFETY: the set runs here; four sums have room.
        unsafe {
            let all = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
            vst1q_s32(totals.as_mut_ptr(), all);
        }
        totals
    }
}
