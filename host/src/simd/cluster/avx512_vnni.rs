//! Clustering, 16 points a vector, by `vpdpbusd`.

use std::arch::x86_64::*;

use crate::simd::avx512::cluster::Avx512;
use crate::simd::cluster::lanes::{Format, Lanes};

/// 16 lanes, with byte products.
pub(in crate::simd) struct Avx512Vnni;

impl Lanes for Avx512Vnni {
    type Vector = __m512i;
    const WIDTH: usize = 16;
    const FORMAT: Format = Format::Unsigned;

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { Avx512::splat(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { Avx512::load(from) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m512i, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { Avx512::store(vector, to) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [__m512i; 4] {
        // SAFETY: the caller's promise.
        unsafe { Avx512::turn(rows, stride) }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { Avx512::prefetch(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: __m512i) -> [__m512i; 2] {
        [coordinates; 2]
    }

    /// Four products of at most 255 · 128 in magnitude; `vpdpbusd` wraps and does not saturate.
    #[inline(always)]
    unsafe fn product(sum: __m512i, points: __m512i, centroid: __m512i) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_dpbusd_epi32(sum, centroid, points) }
    }

    #[inline(always)]
    unsafe fn better(best: (__m512i, __m512i), sum: __m512i, tag: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the set runs here.
        unsafe { Avx512::better(best, sum, tag) }
    }

    #[inline(always)]
    unsafe fn differ(a: __m512i, b: __m512i) -> u64 {
        // SAFETY: the set runs here.
        unsafe { Avx512::differ(a, b) }
    }

    #[inline(always)]
    unsafe fn found(length: __m512i, best: __m512i, tag: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the set runs here.
        unsafe { Avx512::found(length, best, tag) }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Avx512::add(sums, row) }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe { Avx512::subtract(sums, row) }
    }
}

crate::simd::cluster::cluster_kernels!(
    Avx512Vnni,
    4,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
);
