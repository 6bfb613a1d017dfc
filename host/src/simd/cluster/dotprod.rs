//! Clustering, 4 points a vector, by `sdot`.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::simd::cluster::lanes::{Format, Lanes};
use crate::simd::neon::cluster::Neon;

/// 4 lanes, with byte products.
pub(in crate::simd) struct DotProd;

impl Lanes for DotProd {
    type Vector = int32x4_t;
    const WIDTH: usize = 4;
    const FORMAT: Format = Format::Signed;

    #[inline(always)]
    unsafe fn splat(value: i32) -> int32x4_t {
        // SAFETY: the set runs here.
        unsafe { Neon::splat(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { Neon::load(from) }
    }

    #[inline(always)]
    unsafe fn store(vector: int32x4_t, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { Neon::store(vector, to) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [int32x4_t; 4] {
        // SAFETY: the caller's promise.
        unsafe { Neon::turn(rows, stride) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { Neon::prefetch(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: int32x4_t) -> [int32x4_t; 2] {
        [coordinates; 2]
    }

    /// By assembly: its intrinsic is not stable.
    #[inline(always)]
    unsafe fn product(sum: int32x4_t, points: int32x4_t, centroid: int32x4_t) -> int32x4_t {
        let mut sum = sum;
        // SAFETY: the set runs here, and the instruction touches no memory.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sum:v}.4s, {points:v}.16b, {centroid:v}.16b",
                sum = inout(vreg) sum,
                points = in(vreg) points,
                centroid = in(vreg) centroid,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        sum
    }

    #[inline(always)]
    unsafe fn better(
        best: (int32x4_t, int32x4_t),
        sum: int32x4_t,
        tag: int32x4_t,
    ) -> (int32x4_t, int32x4_t) {
        // SAFETY: the set runs here.
        unsafe { Neon::better(best, sum, tag) }
    }

    #[inline(always)]
    unsafe fn differ(a: int32x4_t, b: int32x4_t) -> u64 {
        // SAFETY: the set runs here.
        unsafe { Neon::differ(a, b) }
    }

    #[inline(always)]
    unsafe fn found(length: int32x4_t, best: int32x4_t, tag: int32x4_t) -> (int32x4_t, int32x4_t) {
        // SAFETY: the set runs here.
        unsafe { Neon::found(length, best, tag) }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Neon::add(sums, row) }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Neon::subtract(sums, row) }
    }
}

crate::simd::cluster::cluster_kernels!(DotProd, 4, "neon,dotprod");
