//! Clustering, 8 points a vector, by `vpmaddwd` on widened pairs.

use std::arch::x86_64::*;

use crate::simd::cluster::lanes::{Format, Lanes};

/// 8 lanes.
pub(in crate::simd) struct Avx2;

impl Lanes for Avx2 {
    type Vector = __m256i;
    const WIDTH: usize = 8;
    const FORMAT: Format = Format::Pairs;

    #[inline(always)]
    unsafe fn splat(value: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i32) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(vector: __m256i, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_si256(to.cast(), vector) }
    }

    #[inline(always)]
    unsafe fn turn(rows: *const i8, stride: usize) -> [__m256i; 4] {
        // SAFETY: the caller's promise about 8 rows.
        unsafe {
            // Rows r and r + 4.
            let two = |row: usize| {
                let at = |row: usize| rows.add(row * stride).cast::<__m128i>();
                let v = _mm256_castsi128_si256(_mm_loadu_si128(at(row)));
                _mm256_inserti128_si256::<1>(v, _mm_loadu_si128(at(row + 4)))
            };
            let rows = [two(0), two(1), two(2), two(3)];
            // A matrix of 4 × 4 words in each 128 bits.
            let low01 = _mm256_unpacklo_epi32(rows[0], rows[1]);
            let low23 = _mm256_unpacklo_epi32(rows[2], rows[3]);
            let high01 = _mm256_unpackhi_epi32(rows[0], rows[1]);
            let high23 = _mm256_unpackhi_epi32(rows[2], rows[3]);
            [
                _mm256_unpacklo_epi64(low01, low23),
                _mm256_unpackhi_epi64(low01, low23),
                _mm256_unpacklo_epi64(high01, high23),
                _mm256_unpackhi_epi64(high01, high23),
            ]
        }
    }

    #[inline(always)]
    unsafe fn prefetch(at: *const i8) {
        // SAFETY: a prefetch faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
    }

    #[inline(always)]
    unsafe fn operands(coordinates: __m256i) -> [__m256i; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(coordinates)),
                _mm256_srai_epi16::<8>(coordinates),
            ]
        }
    }

    /// Two products of at most 2¹⁴ do not saturate: `vpmaddwd` has 32 bits for them.
    #[inline(always)]
    unsafe fn product(sum: __m256i, points: __m256i, centroid: __m256i) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(points, centroid)) }
    }

    #[inline(always)]
    unsafe fn better(best: (__m256i, __m256i), sum: __m256i, tag: __m256i) -> (__m256i, __m256i) {
        // SAFETY: the set runs here.
        unsafe {
            let greater = _mm256_cmpgt_epi32(sum, best.0);
            (
                _mm256_max_epi32(sum, best.0),
                _mm256_blendv_epi8(best.1, tag, greater),
            )
        }
    }

    #[inline(always)]
    unsafe fn differ(a: __m256i, b: __m256i) -> u64 {
        // SAFETY: the set runs here.
        unsafe {
            let equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b));
            u64::from(_mm256_movemask_ps(equal) as u32 ^ 0xFF)
        }
    }

    #[inline(always)]
    unsafe fn found(length: __m256i, best: __m256i, tag: __m256i) -> (__m256i, __m256i) {
        // SAFETY: the set runs here.
        unsafe {
            let odd = _mm256_and_si256(tag, _mm256_set1_epi32(1));
            let even = _mm256_sub_epi32(length, _mm256_add_epi32(best, best));
            (_mm256_srli_epi32::<1>(tag), _mm256_add_epi32(even, odd))
        }
    }

    #[inline(always)]
    unsafe fn add(sums: &mut [i16; 32], row: *const i8) {
        for half in [0, 16] {
            // SAFETY: the caller's promise.
            unsafe {
                let sums = sums.as_mut_ptr().add(half).cast::<__m256i>();
                let row = _mm256_cvtepi8_epi16(_mm_loadu_si128(row.add(half).cast()));
                _mm256_storeu_si256(sums, _mm256_add_epi16(_mm256_loadu_si256(sums), row));
            }
        }
    }

    #[inline(always)]
    unsafe fn subtract(sums: &mut [i16; 32], row: *const i8) {
        for half in [0, 16] {
            // SAFETY: the caller's promise.
            unsafe {
                let sums = sums.as_mut_ptr().add(half).cast::<__m256i>();
                let row = _mm256_cvtepi8_epi16(_mm_loadu_si128(row.add(half).cast()));
                _mm256_storeu_si256(sums, _mm256_sub_epi16(_mm256_loadu_si256(sums), row));
            }
        }
    }
}

crate::simd::cluster::cluster_kernels!(Avx2, 2, "avx2");
