//! Vectors of 256 bits.

use std::arch::x86_64::*;

use crate::simd::vectors::{Doubles, Vectors, operations};

/// AVX2, which this machine supports: 8 lanes.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Avx2(());

impl Avx2 {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx2,f16c,fma")]
    pub(in crate::simd) fn here() -> Self {
        Self(())
    }
}

impl Vectors for Avx2 {
    type Words = __m256i;
    type Mask = __m256i;

    #[inline(always)]
    fn lanes(self) -> usize {
        8
    }

    #[inline(always)]
    unsafe fn load(self, from: *const i32) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, words: __m256i, to: *mut i32) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_storeu_si256(to.cast(), words) }
    }

    #[inline(always)]
    unsafe fn store_bytes(self, words: __m256i, to: *mut u8) {
        // SAFETY: the set runs here; the caller's promise about 8 bytes.
        unsafe {
            let order = _mm256_set1_epi32(0x0C_08_04_00);
            let fours = _mm256_shuffle_epi8(words, order);
            let (low, high) = (
                _mm256_castsi256_si128(fours),
                _mm256_extracti128_si256::<1>(fours),
            );
            _mm_storeu_si64(to, _mm_unpacklo_epi32(low, high));
        }
    }

    #[inline(always)]
    unsafe fn turn(self, rows: *const i8, stride: usize) -> [__m256i; 4] {
        // SAFETY: the set runs here; the caller's promise about 8 rows.
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

    operations! {
        fn splat(self, value: i32) -> __m256i { _mm256_set1_epi32(value) }
        fn add(self, a: __m256i, b: __m256i) -> __m256i { _mm256_add_epi32(a, b) }
        fn subtract(self, a: __m256i, b: __m256i) -> __m256i { _mm256_sub_epi32(a, b) }
        fn max(self, a: __m256i, b: __m256i) -> __m256i { _mm256_max_epi32(a, b) }
        fn and(self, a: __m256i, b: __m256i) -> __m256i { _mm256_and_si256(a, b) }
        fn half(self, words: __m256i) -> __m256i { _mm256_srli_epi32::<1>(words) }
        fn exceeds(self, a: __m256i, b: __m256i) -> __m256i { _mm256_cmpgt_epi32(a, b) }
        fn equals(self, a: __m256i, b: __m256i) -> __m256i { _mm256_cmpeq_epi32(a, b) }
        fn select(self, mask: __m256i, a: __m256i, b: __m256i) -> __m256i { _mm256_blendv_epi8(b, a, mask) }
        fn bits(self, mask: __m256i) -> u64 {
            u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(mask)).cast_unsigned())
        }
        fn to_f32(self, integers: __m256i) -> __m256i { _mm256_castps_si256(_mm256_cvtepi32_ps(integers)) }
        fn multiply_f32(self, a: __m256i, b: __m256i) -> __m256i {
            _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))
        }
        fn add_f32(self, a: __m256i, b: __m256i) -> __m256i {
            _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))
        }
        fn subtract_f32(self, a: __m256i, b: __m256i) -> __m256i {
            _mm256_castps_si256(_mm256_sub_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))
        }
        fn truncate(self, x: __m256i) -> __m256i { _mm256_cvttps_epi32(_mm256_castsi256_ps(x)) }
        fn reaches_f32(self, a: __m256i, b: __m256i) -> __m256i {
            _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))
        }
    }
}

impl Doubles for Avx2 {
    type Doubles = __m256d;

    #[inline(always)]
    unsafe fn widen(self, from: *const f32) -> __m256d {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn load_f64(self, from: *const f64) -> __m256d {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn store_f64(self, x: __m256d, to: *mut f64) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_storeu_pd(to, x) }
    }

    operations! {
        fn splat_f64(self, value: f64) -> __m256d { _mm256_set1_pd(value) }
        fn add_f64(self, a: __m256d, b: __m256d) -> __m256d { _mm256_add_pd(a, b) }
        fn subtract_f64(self, a: __m256d, b: __m256d) -> __m256d { _mm256_sub_pd(a, b) }
        fn multiply_f64(self, a: __m256d, b: __m256d) -> __m256d { _mm256_mul_pd(a, b) }
        fn larger_f64(self, most: __m256d, x: __m256d) -> __m256d {
            _mm256_max_pd(most, _mm256_andnot_pd(_mm256_set1_pd(-0.0), x))
        }
    }
}
