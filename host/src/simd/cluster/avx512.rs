//! Clustering, 16 points a vector, by `vpmaddwd` on widened pairs.

use std::arch::x86_64::*;

use crate::simd::cluster::lanes::{Format, Lanes};

/// 16 lanes.
pub(in crate::simd) struct Avx512;

impl Lanes for Avx512 {
    type Vector = __m512i;
    const WIDTH: usize = 16;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m512i, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_si512(to.cast(), vector) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [__m512i; 4] {
        // SAFETY: the caller's promise about 16 rows.
        unsafe {
            // Rows r, r + 4, r + 8 and r + 12.
            let four = |row: usize| {
                let at = |row: usize| rows.add(row * stride).cast::<__m128i>();
                let v = _mm512_castsi128_si512(_mm_loadu_si128(at(row)));
                let v = _mm512_inserti32x4::<1>(v, _mm_loadu_si128(at(row + 4)));
                let v = _mm512_inserti32x4::<2>(v, _mm_loadu_si128(at(row + 8)));
                _mm512_inserti32x4::<3>(v, _mm_loadu_si128(at(row + 12)))
            };
            let rows = [four(0), four(1), four(2), four(3)];
            // A matrix of 4 × 4 words in each 128 bits.
            let low01 = _mm512_unpacklo_epi32(rows[0], rows[1]);
            let low23 = _mm512_unpacklo_epi32(rows[2], rows[3]);
            let high01 = _mm512_unpackhi_epi32(rows[0], rows[1]);
            let high23 = _mm512_unpackhi_epi32(rows[2], rows[3]);
            [
                _mm512_unpacklo_epi64(low01, low23),
                _mm512_unpackhi_epi64(low01, low23),
                _mm512_unpacklo_epi64(high01, high23),
                _mm512_unpackhi_epi64(high01, high23),
            ]
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: __m512i) -> [__m512i; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                _mm512_srai_epi16::<8>(_mm512_slli_epi16::<8>(coordinates)),
                _mm512_srai_epi16::<8>(coordinates),
            ]
        }
    }

    /// Two products of at most 2¹⁴ do not saturate: `vpmaddwd` has 32 bits for them.
    #[inline(always)]
    unsafe fn product(sum: __m512i, points: __m512i, centroid: __m512i) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_add_epi32(sum, _mm512_madd_epi16(points, centroid)) }
    }

    #[inline(always)]
    unsafe fn better(best: (__m512i, __m512i), sum: __m512i, tag: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the set runs here.
        unsafe {
            let greater = _mm512_cmpgt_epi32_mask(sum, best.0);
            (
                _mm512_max_epi32(sum, best.0),
                _mm512_mask_mov_epi32(best.1, greater, tag),
            )
        }
    }

    #[inline(always)]
    unsafe fn differ(a: __m512i, b: __m512i) -> u64 {
        // SAFETY: the set runs here.
        unsafe { _mm512_cmpneq_epi32_mask(a, b).into() }
    }

    #[inline(always)]
    unsafe fn found(length: __m512i, best: __m512i, tag: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the set runs here.
        unsafe {
            let odd = _mm512_and_si512(tag, _mm512_set1_epi32(1));
            let even = _mm512_sub_epi32(length, _mm512_add_epi32(best, best));
            (_mm512_srli_epi32::<1>(tag), _mm512_add_epi32(even, odd))
        }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe {
            let row = _mm512_cvtepi8_epi16(_mm256_loadu_si256(row.cast()));
            let sums = sums.as_mut_ptr().cast();
            _mm512_storeu_si512(sums, _mm512_add_epi16(_mm512_loadu_si512(sums), row));
        }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        // SAFETY: the caller's promise.
        unsafe {
            let row = _mm512_cvtepi8_epi16(_mm256_loadu_si256(row.cast()));
            let sums = sums.as_mut_ptr().cast();
            _mm512_storeu_si512(sums, _mm512_sub_epi16(_mm512_loadu_si512(sums), row));
        }
    }
}

crate::simd::cluster::cluster_kernels!(Avx512, 4, "avx512f,avx512bw,avx512dq,avx512vl");
