//! Clustering, 8 points a vector, by `vpdpbusd`.

use std::arch::x86_64::*;

use crate::simd::avx2::cluster::Avx2;
use crate::simd::cluster::lanes::{Format, Lanes};

/// 8 lanes, with byte products.
pub(in crate::simd) struct AvxVnni;

impl Lanes for AvxVnni {
    type Vector = __m256i;
    const WIDTH: usize = 8;
    const FORMAT: Format = Format::Unsigned;

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { Avx2::splat(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { Avx2::load(from) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m256i, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { Avx2::store(vector, to) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [__m256i; 4] {
        // SAFETY: the caller's promise.
        unsafe { Avx2::turn(rows, stride) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { Avx2::prefetch(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: __m256i) -> [__m256i; 2] {
        [coordinates; 2]
    }

    /// Four products of at most 255 · 128 in magnitude; `vpdpbusd` wraps and does not saturate.
    #[inline(always)]
    unsafe fn product(sum: __m256i, points: __m256i, centroid: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_dpbusd_avx_epi32(sum, centroid, points) }
    }

    #[inline(always)]
    unsafe fn better(best: (__m256i, __m256i), sum: __m256i, tag: __m256i) -> (__m256i, __m256i) {
        // SAFETY: the set runs here.
        unsafe { Avx2::better(best, sum, tag) }
    }

    #[inline(always)]
    unsafe fn differ(a: __m256i, b: __m256i) -> u64 {
        // SAFETY: the set runs here.
        unsafe { Avx2::differ(a, b) }
    }

    #[inline(always)]
    unsafe fn found(length: __m256i, best: __m256i, tag: __m256i) -> (__m256i, __m256i) {
        // SAFETY: the set runs here.
        unsafe { Avx2::found(length, best, tag) }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Avx2::add(sums, row) }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Avx2::subtract(sums, row) }
    }
}

crate::simd::cluster::cluster_kernels!(AvxVnni, 2, "avx2,avxvnni");
