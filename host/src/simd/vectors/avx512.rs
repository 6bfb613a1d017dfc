//! Vectors of 512 bits.

use std::arch::x86_64::*;

use crate::simd::vectors::{Doubles, Vectors, operations};

/// AVX-512, which this machine supports: 16 lanes.
#[derive(Clone, Copy)]
pub(in crate::simd) struct Avx512(());

impl Avx512 {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(in crate::simd) fn here() -> Self {
        Self(())
    }
}

impl Vectors for Avx512 {
    type Words = __m512i;
    type Mask = __mmask16;

    #[inline(always)]
    fn lanes(self) -> usize {
        16
    }

    #[inline(always)]
    unsafe fn load(self, from: *const i32) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, words: __m512i, to: *mut i32) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_storeu_si512(to.cast(), words) }
    }

    #[inline(always)]
    unsafe fn store_bytes(self, words: __m512i, to: *mut u8) {
        // SAFETY: the set runs here; the caller's promise about 16 bytes.
        unsafe { _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(words)) }
    }

    #[inline(always)]
    unsafe fn turn(self, rows: *const i8, stride: usize) -> [__m512i; 4] {
        // SAFETY: the set runs here; the caller's promise about 16 rows.
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

    operations! {
        fn splat(self, value: i32) -> __m512i { _mm512_set1_epi32(value) }
        fn add(self, a: __m512i, b: __m512i) -> __m512i { _mm512_add_epi32(a, b) }
        fn subtract(self, a: __m512i, b: __m512i) -> __m512i { _mm512_sub_epi32(a, b) }
        fn max(self, a: __m512i, b: __m512i) -> __m512i { _mm512_max_epi32(a, b) }
        fn and(self, a: __m512i, b: __m512i) -> __m512i { _mm512_and_si512(a, b) }
        fn half(self, words: __m512i) -> __m512i { _mm512_srli_epi32::<1>(words) }
        fn exceeds(self, a: __m512i, b: __m512i) -> __mmask16 { _mm512_cmpgt_epi32_mask(a, b) }
        fn equals(self, a: __m512i, b: __m512i) -> __mmask16 { _mm512_cmpeq_epi32_mask(a, b) }
        fn select(self, mask: __mmask16, a: __m512i, b: __m512i) -> __m512i {
            _mm512_mask_mov_epi32(b, mask, a)
        }
        fn to_f32(self, integers: __m512i) -> __m512i { _mm512_castps_si512(_mm512_cvtepi32_ps(integers)) }
        fn multiply_f32(self, a: __m512i, b: __m512i) -> __m512i {
            _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)))
        }
        fn add_f32(self, a: __m512i, b: __m512i) -> __m512i {
            _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)))
        }
        fn subtract_f32(self, a: __m512i, b: __m512i) -> __m512i {
            _mm512_castps_si512(_mm512_sub_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)))
        }
        fn truncate(self, x: __m512i) -> __m512i { _mm512_cvttps_epi32(_mm512_castsi512_ps(x)) }
        fn reaches_f32(self, a: __m512i, b: __m512i) -> __mmask16 {
            _mm512_cmp_ps_mask::<_CMP_GE_OQ>(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b))
        }
    }

    #[inline(always)]
    fn bits(self, mask: __mmask16) -> u64 {
        mask.into()
    }
}

impl Doubles for Avx512 {
    type Doubles = __m512d;

    #[inline(always)]
    unsafe fn widen(self, from: *const f32) -> __m512d {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn load_f64(self, from: *const f64) -> __m512d {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn store_f64(self, x: __m512d, to: *mut f64) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_storeu_pd(to, x) }
    }

    operations! {
        fn splat_f64(self, value: f64) -> __m512d { _mm512_set1_pd(value) }
        fn add_f64(self, a: __m512d, b: __m512d) -> __m512d { _mm512_add_pd(a, b) }
        fn subtract_f64(self, a: __m512d, b: __m512d) -> __m512d { _mm512_sub_pd(a, b) }
        fn multiply_f64(self, a: __m512d, b: __m512d) -> __m512d { _mm512_mul_pd(a, b) }
        fn larger_f64(self, most: __m512d, x: __m512d) -> __m512d { _mm512_max_pd(most, _mm512_abs_pd(x)) }
    }
}
