//! Integer search, 16 values a vector.
//!
//! A product of two bytes fits 16 bits; `SADALP` adds pairs of them to 32 bits, so nothing saturates.

use std::arch::aarch64::*;

use super::cluster::Neon;
use super::many_search;
use crate::simd::cluster::lanes::Lanes as Points;
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

dots_kernels!(Neon, "neon");
passing_kernel!(Neon, "neon");

impl Lanes for Neon {
    type Values = int8x16_t;
    type Sums = int32x4_t;
    type Squares = int32x4_t;
    const STEP: usize = 16;
    const PARTIAL: bool = false;
    const ABOVE: i32 = 0;

    #[inline(always)]
    unsafe fn load(from: *const i8, _: usize) -> int8x16_t {
        // SAFETY: the caller's promise.
        unsafe { vld1q_s8(from) }
    }

    #[inline(always)]
    unsafe fn rest(from: *const i8, count: usize, readable: usize) -> int8x16_t {
        let mut copy = [0; 16];
        let ones = ones(count).cast();
        // SAFETY: the caller's promise; so many ones lie there.
        unsafe {
            let from = within(&mut copy, from, count, readable);
            vandq_s8(<Self as Lanes>::load(from, Self::STEP), vld1q_s8(ones))
        }
    }

    #[inline(always)]
    unsafe fn start(value: i32) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vsetq_lane_s32::<0>(value, vdupq_n_s32(0)) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: int32x4_t, row: int8x16_t, query: int8x16_t) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe {
            let low = vmull_s8(vget_low_s8(row), vget_low_s8(query));
            vpadalq_s16(vpadalq_s16(sums, low), vmull_high_s8(row, query))
        }
    }

    #[inline(always)]
    unsafe fn no_squares() -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_s32(0) }
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
    unsafe fn totals([a, b, c, d]: [int32x4_t; 4]) -> [i32; 4] {
        let mut totals = [0; 4];
        // SAFETY: the set runs here; four sums have room.
        unsafe {
            let all = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
            vst1q_s32(totals.as_mut_ptr(), all);
        }
        totals
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { <Self as Points>::prefetch(at) }
    }
}

impl Compare for Neon {
    type Vector = int32x4_t;
    const WIDTH: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const i32) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { vld1q_s32(from) }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vdupq_n_s32(value) }
    }

    #[inline(always)]
    unsafe fn subtract(a: int32x4_t, b: int32x4_t) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { vsubq_s32(a, b) }
    }

    #[inline(always)]
    unsafe fn exceeds(a: int32x4_t, b: int32x4_t) -> u64 {
        // SAFETY: the set runs here.
        unsafe { bits(vcgtq_s32(a, b)) }
    }

    #[inline(always)]
    unsafe fn reaches(dots: int32x4_t, norms: int32x4_t, square: f32) -> u64 {
        // SAFETY: the set runs here.
        unsafe {
            let x = vcvtq_f32_s32(dots);
            let squares = vmulq_f32(x, vabsq_f32(x));
            let bars = vmulq_f32(vcvtq_f32_s32(norms), vdupq_n_f32(square));
            bits(vcgeq_f32(squares, bars))
        }
    }
}

/// A bit of each lane of ones or zeros.
#[inline]
#[target_feature(enable = "neon")]
fn bits(lanes: uint32x4_t) -> u64 {
    // SAFETY: four words lie there.
    let places = unsafe { vld1q_u32([1, 2, 4, 8].as_ptr()) };
    vaddvq_u32(vandq_u32(lanes, places)).into()
}
