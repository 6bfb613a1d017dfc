//! Values, sums and codes in lanes of 512 bits.

use std::arch::x86_64::*;

use tercet_core::quant::Grid;
use tercet_core::{bf16, f16};

use super::vectors::Avx512;
use super::widen;
use crate::simd::exact::{WIDENED, Window};
use crate::simd::quantize::Quantize;
use crate::simd::quantize::kernels::kernels;
use crate::simd::quantize::lanes::Quantizing;
use crate::simd::vectors::{Vectors, operations};

/// The kernels of quantizers.
pub(in crate::simd) const KERNELS: Quantize = Quantize {
    widen_f16: widen::f16,
    widen_bf16: widen::bf16,
    ..LOOPS
};

kernels!(
    Avx512,
    "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi1,bmi2,f16c,lzcnt,popcnt"
);

impl Quantizing for Avx512 {
    type Codes = __m512i;

    #[inline(always)]
    unsafe fn load_f16(self, at: *const f16) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_castps_si512(_mm512_cvtph_ps(_mm256_loadu_si256(at.cast()))) }
    }

    #[inline(always)]
    unsafe fn load_bf16(self, at: *const bf16) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let halves = _mm256_loadu_si256(at.cast());
            _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves))
        }
    }

    #[inline(always)]
    unsafe fn steps(self, codes: *const i8, zero_point: __m512i) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let codes = _mm512_cvtepi8_epi32(_mm_loadu_si128(codes.cast()));
            _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_sub_epi32(codes, zero_point)))
        }
    }

    #[inline(always)]
    unsafe fn stream_past(self, values: __m512i, to: *mut f32) {
        // SAFETY: the set runs here; the caller's promise; whoever streams ends with a fence.
        unsafe { _mm512_stream_si512(to.cast(), values) }
    }

    #[inline(always)]
    unsafe fn bytes(self, at: *const u8) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(at.cast())) }
    }

    #[inline(always)]
    unsafe fn store_tops(self, x: [__m512i; 4], to: *mut u16) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            for (at, x) in x.into_iter().enumerate() {
                let tops = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(x));
                _mm256_storeu_si256(to.add(16 * at).cast(), tops);
            }
        }
    }

    #[inline(always)]
    unsafe fn load_codes(self, from: *const i8) -> __m512i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_codes(self, codes: __m512i, to: *mut i8) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm512_storeu_si512(to.cast(), codes) }
    }

    #[inline(always)]
    unsafe fn stream_codes(self, codes: __m512i, to: *mut i8) {
        // SAFETY: the set runs here; the caller's promise; whoever streams ends with a fence.
        unsafe { _mm512_stream_si512(to.cast(), codes) }
    }

    operations! {
        fn larger(self, most: [__m512i; 2], x: __m512i) -> [__m512i; 2] {
            [_mm512_max_epu32(most[0], x), _mm512_max_epi32(most[1], x)]
        }
        fn smaller(self, least: [__m512i; 2], x: __m512i) -> [__m512i; 2] {
            [_mm512_min_epu32(least[0], x), _mm512_min_epi32(least[1], x)]
        }
        fn largest(self, most: [__m512i; 2]) -> (u32, i32) {
            (
                _mm512_reduce_max_epu32(most[0]),
                _mm512_reduce_max_epi32(most[1]),
            )
        }
        fn smallest(self, least: [__m512i; 2]) -> (u32, i32) {
            (
                _mm512_reduce_min_epu32(least[0]),
                _mm512_reduce_min_epi32(least[1]),
            )
        }
        fn within(self, x: __m512i, from: __m512i, to: __m512i) -> __m512i {
            let magnitude = _mm512_and_si512(x, self.pattern(i32::MAX as u32));
            let reached = _mm512_cmpge_epi32_mask(magnitude, from);
            let within = _mm512_mask_cmple_epi32_mask(reached, magnitude, to);
            _mm512_maskz_mov_epi32(within, magnitude)
        }
        fn add_magnitudes(self, parts: [__m512d; 2], x: __m512i) -> [__m512d; 2] {
            let [even, odd] = parts;
            let bits = _mm512_set1_epi64(WIDENED);
            let evens = _mm512_and_si512(_mm512_slli_epi64::<29>(x), bits);
            let odds = _mm512_and_si512(_mm512_srli_epi64::<3>(x), bits);
            [
                _mm512_add_pd(even, _mm512_castsi512_pd(evens)),
                _mm512_add_pd(odd, _mm512_castsi512_pd(odds)),
            ]
        }
        fn units(self, sums: &[[__m512d; 2]; 4], window: Window) -> u64 {
            let [first, second] = window.factors();
            let (first, second) = (_mm512_set1_pd(first), _mm512_set1_pd(second));
            let mut units = _mm512_setzero_si512();
            for &sum in sums.as_flattened() {
                let sum = _mm512_mul_pd(_mm512_mul_pd(sum, first), second);
                units = _mm512_add_epi64(units, _mm512_cvttpd_epu64(sum));
            }
            _mm512_reduce_add_epi64(units) as u64
        }
        fn signs(self, x: [__m512i; 4], threshold: u32) -> (__m512i, u32) {
            // Signed, the patterns from the threshold up belong to positive values; unsigned, those from the threshold
            // with a sign bit belong to negative ones.
            let (positive, negative) = (self.pattern(threshold), self.pattern(threshold | 1 << 31));
            let (mut above, mut below) = (0, 0);
            for (at, x) in x.into_iter().enumerate() {
                above |= u64::from(_mm512_cmpge_epi32_mask(x, positive)) << (16 * at);
                below |= u64::from(_mm512_cmpge_epu32_mask(x, negative)) << (16 * at);
            }
            let ones = _mm512_set1_epi8(1);
            let signs = _mm512_maskz_mov_epi8(above, ones);
            let signs = _mm512_mask_sub_epi8(signs, below, _mm512_setzero_si512(), ones);
            (signs, (above | below).count_ones())
        }
        fn divide_f32(self, x: __m512i, by: __m512i) -> __m512i {
            let (x, by) = (_mm512_castsi512_ps(x), _mm512_castsi512_ps(by));
            _mm512_castps_si512(_mm512_div_ps(x, by))
        }
        fn off(self, x: __m512i) -> __m512i {
            // The part that rounding removes.
            let off = _mm512_castps_si512(_mm512_reduce_ps::<0>(_mm512_castsi512_ps(x)));
            _mm512_and_si512(off, self.pattern(i32::MAX as u32))
        }
        fn round(self, x: __m512i, grid: &Grid) -> __m512i {
            // As in the reference: one step beyond the end. Values below all integers, and NaNs, which the minimum
            // passes through, are converted to the lowest integer, and stay so when they are packed and clipped.
            let above = i16::from(grid.high) - i16::from(grid.zero_point) + 1;
            let x = _mm512_min_ps(_mm512_set1_ps(f32::from(above)), _mm512_castsi512_ps(x));
            _mm512_cvtps_epi32(x)
        }
        fn codes(self, parts: [__m512i; 4], grid: &Grid) -> (__m512i, u32, u32) {
            let [a, b, c, d] = parts;
            let zero_point = _mm512_set1_epi16(grid.zero_point.into());
            let low = _mm512_set1_epi16(grid.low.into());
            let high = _mm512_set1_epi16(grid.high.into());
            let free_ab = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero_point);
            let free_cd = _mm512_adds_epi16(_mm512_packs_epi32(c, d), zero_point);
            let ab = _mm512_min_epi16(_mm512_max_epi16(free_ab, low), high);
            let cd = _mm512_min_epi16(_mm512_max_epi16(free_cd, low), high);
            let cut_ab = _mm512_cmpneq_epi16_mask(ab, free_ab);
            let cut_cd = _mm512_cmpneq_epi16_mask(cd, free_cd);
            // Dword 4i + j has codes of quarter j; in order it is dword 4j + i.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let code = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(ab, cd));
            let moved = _mm512_cmpneq_epi8_mask(code, _mm512_set1_epi8(grid.zero_point));
            let cut = u64::from(cut_ab) << 32 | u64::from(cut_cd);
            (code, moved.count_ones(), cut.count_ones())
        }
        fn choose(self, table: __m512i, codes: __m512i, shift: u32) -> __m512i {
            let codes = _mm512_srl_epi32(codes, _mm_cvtsi32_si128(shift as i32));
            // It uses only two bits of a lane.
            _mm512_castps_si512(_mm512_permutevar_ps(_mm512_castsi512_ps(table), codes))
        }
        fn pack(self, packed: __m512i, codes: __m512i) -> __m512i {
            // No bit leaves its byte.
            let ones = _mm512_set1_epi8(1);
            _mm512_add_epi8(_mm512_slli_epi16::<2>(packed), _mm512_add_epi8(codes, ones))
        }
        fn ordered(self, x: __m512i) -> __m512i {
            let flips = _mm512_or_si512(_mm512_srai_epi32::<31>(x), self.pattern(1 << 31));
            _mm512_xor_si512(x, flips)
        }
    }
}
