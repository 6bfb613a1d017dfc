//! Vectors of 128 bits.

use std::arch::x86_64::*;

use crate::simd::vectors::{Vectors, operations};

/// SSE4.1, which this machine supports: 4 lanes.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Sse41(());

impl Sse41 {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "sse4.1")]
    pub(in crate::simd) fn here() -> Self {
        Self(())
    }
}

impl Vectors for Sse41 {
    type Words = __m128i;
    type Mask = __m128i;

    #[inline(always)]
    fn lanes(self) -> usize {
        4
    }

    #[inline(always)]
    unsafe fn load(self, from: *const i32) -> __m128i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, words: __m128i, to: *mut i32) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm_storeu_si128(to.cast(), words) }
    }

    #[inline(always)]
    unsafe fn store_bytes(self, words: __m128i, to: *mut u8) {
        // SAFETY: the set runs here; the caller's promise about 4 bytes.
        unsafe {
            let order = _mm_set1_epi32(0x0C_08_04_00);
            _mm_storeu_si32(to, _mm_shuffle_epi8(words, order));
        }
    }

    #[inline(always)]
    unsafe fn turn(self, rows: *const i8, stride: usize) -> [__m128i; 4] {
        // SAFETY: the set runs here; the caller's promise about 4 rows.
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

    operations! {
        fn splat(self, value: i32) -> __m128i { _mm_set1_epi32(value) }
        fn add(self, a: __m128i, b: __m128i) -> __m128i { _mm_add_epi32(a, b) }
        fn subtract(self, a: __m128i, b: __m128i) -> __m128i { _mm_sub_epi32(a, b) }
        fn max(self, a: __m128i, b: __m128i) -> __m128i { _mm_max_epi32(a, b) }
        fn and(self, a: __m128i, b: __m128i) -> __m128i { _mm_and_si128(a, b) }
        fn half(self, words: __m128i) -> __m128i { _mm_srli_epi32::<1>(words) }
        fn exceeds(self, a: __m128i, b: __m128i) -> __m128i { _mm_cmpgt_epi32(a, b) }
        fn equals(self, a: __m128i, b: __m128i) -> __m128i { _mm_cmpeq_epi32(a, b) }
        fn select(self, mask: __m128i, a: __m128i, b: __m128i) -> __m128i { _mm_blendv_epi8(b, a, mask) }
        fn bits(self, mask: __m128i) -> u64 {
            u64::from(_mm_movemask_ps(_mm_castsi128_ps(mask)).cast_unsigned())
        }
        fn to_f32(self, integers: __m128i) -> __m128i { _mm_castps_si128(_mm_cvtepi32_ps(integers)) }
        fn multiply_f32(self, a: __m128i, b: __m128i) -> __m128i {
            _mm_castps_si128(_mm_mul_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)))
        }
        fn add_f32(self, a: __m128i, b: __m128i) -> __m128i {
            _mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)))
        }
        fn subtract_f32(self, a: __m128i, b: __m128i) -> __m128i {
            _mm_castps_si128(_mm_sub_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)))
        }
        fn truncate(self, x: __m128i) -> __m128i { _mm_cvttps_epi32(_mm_castsi128_ps(x)) }
        fn reaches_f32(self, a: __m128i, b: __m128i) -> __m128i {
            _mm_castps_si128(_mm_cmpge_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)))
        }
    }
}
