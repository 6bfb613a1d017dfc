//! Clustering, 4 points a vector, by `pmaddwd` on widened pairs.

use std::arch::x86_64::*;

use crate::simd::cluster::lanes::{Format, Lanes};

/// 4 lanes.
pub(in crate::simd) struct Sse41;

impl Lanes for Sse41 {
    type Vector = __m128i;
    const WIDTH: usize = 4;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m128i {
        // SAFETY: the caller's promise.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m128i, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { _mm_storeu_si128(to.cast(), vector) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [__m128i; 4] {
        // SAFETY: the caller's promise about 4 rows.
        unsafe {
            let row = |row: usize| _mm_loadu_si128(rows.add(row * stride).cast());
            let low01 = _mm_unpacklo_epi32(row(0), row(1));
            let low23 = _mm_unpacklo_epi32(row(2), row(3));
            let high01 = _mm_unpackhi_epi32(row(0), row(1));
            let high23 = _mm_unpackhi_epi32(row(2), row(3));
            [
                _mm_unpacklo_epi64(low01, low23),
                _mm_unpackhi_epi64(low01, low23),
                _mm_unpacklo_epi64(high01, high23),
                _mm_unpackhi_epi64(high01, high23),
            ]
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: __m128i) -> [__m128i; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                _mm_srai_epi16::<8>(_mm_slli_epi16::<8>(coordinates)),
                _mm_srai_epi16::<8>(coordinates),
            ]
        }
    }

    /// Two products of at most 2¹⁴ do not saturate: `pmaddwd` has 32 bits for them.
    #[inline(always)]
    unsafe fn product(sum: __m128i, points: __m128i, centroid: __m128i) -> __m128i {
        // SAFETY: the set runs here.
        unsafe { _mm_add_epi32(sum, _mm_madd_epi16(points, centroid)) }
    }

    #[inline(always)]
    unsafe fn better(best: (__m128i, __m128i), sum: __m128i, tag: __m128i) -> (__m128i, __m128i) {
        // SAFETY: the set runs here.
        unsafe {
            let greater = _mm_cmpgt_epi32(sum, best.0);
            (
                _mm_max_epi32(sum, best.0),
                _mm_blendv_epi8(best.1, tag, greater),
            )
        }
    }

    #[inline(always)]
    unsafe fn differ(a: __m128i, b: __m128i) -> u64 {
        // SAFETY: the set runs here.
        unsafe {
            let equal = _mm_castsi128_ps(_mm_cmpeq_epi32(a, b));
            u64::from(_mm_movemask_ps(equal) as u32 ^ 0xF)
        }
    }

    #[inline(always)]
    unsafe fn found(length: __m128i, best: __m128i, tag: __m128i) -> (__m128i, __m128i) {
        // SAFETY: the set runs here.
        unsafe {
            let odd = _mm_and_si128(tag, _mm_set1_epi32(1));
            let even = _mm_sub_epi32(length, _mm_add_epi32(best, best));
            (_mm_srli_epi32::<1>(tag), _mm_add_epi32(even, odd))
        }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        for part in [0, 8, 16, 24] {
            // SAFETY: the caller's promise.
            unsafe {
                let sums = sums.as_mut_ptr().add(part).cast::<__m128i>();
                let row = _mm_cvtepi8_epi16(_mm_loadl_epi64(row.add(part).cast()));
                _mm_storeu_si128(sums, _mm_add_epi16(_mm_loadu_si128(sums), row));
            }
        }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        for part in [0, 8, 16, 24] {
            // SAFETY: the caller's promise.
            unsafe {
                let sums = sums.as_mut_ptr().add(part).cast::<__m128i>();
                let row = _mm_cvtepi8_epi16(_mm_loadl_epi64(row.add(part).cast()));
                _mm_storeu_si128(sums, _mm_sub_epi16(_mm_loadu_si128(sums), row));
            }
        }
    }
}

crate::simd::cluster::cluster_kernels!(Sse41, 2, "sse4.1");
