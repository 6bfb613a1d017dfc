//! Values, sums and codes in lanes of 256 bits.

use std::arch::x86_64::*;

use tercet_core::quant::Grid;
use tercet_core::{bf16, f16};

use super::vectors::Avx2;
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

kernels!(Avx2, "avx2,bmi1,bmi2,f16c,fma,lzcnt,popcnt");

impl Quantizing for Avx2 {
    type Codes = __m256i;

    #[inline(always)]
    unsafe fn load_f16(self, at: *const f16) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128(at.cast()))) }
    }

    #[inline(always)]
    unsafe fn load_bf16(self, at: *const bf16) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let halves = _mm_loadu_si128(at.cast());
            _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves))
        }
    }

    #[inline(always)]
    unsafe fn steps(self, codes: *const i8, zero_point: __m256i) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            let codes = _mm256_cvtepi8_epi32(_mm_loadl_epi64(codes.cast()));
            _mm256_castps_si256(_mm256_cvtepi32_ps(_mm256_sub_epi32(codes, zero_point)))
        }
    }

    #[inline(always)]
    unsafe fn stream_past(self, values: __m256i, to: *mut f32) {
        // SAFETY: the set runs here; the caller's promise; whoever streams ends with a fence.
        unsafe { _mm256_stream_si256(to.cast(), values) }
    }

    #[inline(always)]
    unsafe fn bytes(self, at: *const u8) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast())) }
    }

    #[inline(always)]
    unsafe fn store_tops(self, [a, b, c, d]: [__m256i; 4], to: *mut u16) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe {
            for (at, (a, b)) in [(a, b), (c, d)].into_iter().enumerate() {
                let (a, b) = (_mm256_srli_epi32::<16>(a), _mm256_srli_epi32::<16>(b));
                // Packing works within halves: the order of quarters is 0, 2, 1, 3.
                let tops = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(a, b));
                _mm256_storeu_si256(to.add(16 * at).cast(), tops);
            }
        }
    }

    #[inline(always)]
    unsafe fn load_codes(self, from: *const i8) -> __m256i {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_codes(self, codes: __m256i, to: *mut i8) {
        // SAFETY: the set runs here; the caller's promise.
        unsafe { _mm256_storeu_si256(to.cast(), codes) }
    }

    #[inline(always)]
    unsafe fn stream_codes(self, codes: __m256i, to: *mut i8) {
        // SAFETY: the set runs here; the caller's promise; whoever streams ends with a fence.
        unsafe { _mm256_stream_si256(to.cast(), codes) }
    }

    operations! {
        fn larger(self, most: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
            [_mm256_max_epu32(most[0], x), _mm256_max_epi32(most[1], x)]
        }
        fn smaller(self, least: [__m256i; 2], x: __m256i) -> [__m256i; 2] {
            [_mm256_min_epu32(least[0], x), _mm256_min_epi32(least[1], x)]
        }
        fn largest(self, most: [__m256i; 2]) -> (u32, i32) {
            let (unsigned, signed) = (lanes(most[0]), lanes(most[1]));
            let signed = signed.into_iter().map(|x| x as i32);
            (
                unsigned.into_iter().fold(0, u32::max),
                signed.fold(i32::MIN, i32::max),
            )
        }
        fn smallest(self, least: [__m256i; 2]) -> (u32, i32) {
            let (unsigned, signed) = (lanes(least[0]), lanes(least[1]));
            let signed = signed.into_iter().map(|x| x as i32);
            (
                unsigned.into_iter().fold(u32::MAX, u32::min),
                signed.fold(i32::MAX, i32::min),
            )
        }
        fn within(self, x: __m256i, from: __m256i, to: __m256i) -> __m256i {
            // 31 bits, so that signed comparisons work.
            let magnitude = _mm256_and_si256(x, self.pattern(i32::MAX as u32));
            let below = _mm256_cmpgt_epi32(from, magnitude);
            let outside = _mm256_or_si256(below, _mm256_cmpgt_epi32(magnitude, to));
            _mm256_andnot_si256(outside, magnitude)
        }
        fn add_magnitudes(self, parts: [__m256d; 2], x: __m256i) -> [__m256d; 2] {
            let [even, odd] = parts;
            let bits = _mm256_set1_epi64x(WIDENED);
            let evens = _mm256_and_si256(_mm256_slli_epi64::<29>(x), bits);
            let odds = _mm256_and_si256(_mm256_srli_epi64::<3>(x), bits);
            [
                _mm256_add_pd(even, _mm256_castsi256_pd(evens)),
                _mm256_add_pd(odd, _mm256_castsi256_pd(odds)),
            ]
        }
        fn units(self, sums: &[[__m256d; 2]; 4], window: Window) -> u64 {
            let [first, second] = window.factors();
            let (first, second) = (_mm256_set1_pd(first), _mm256_set1_pd(second));
            // From 2⁵² on, an f64's mantissa counts in ones.
            let whole = _mm256_set1_pd((1u64 << 52) as f64);
            let mantissa = _mm256_set1_epi64x((1 << 52) - 1);
            let mut units = _mm256_setzero_si256();
            for &sum in sums.as_flattened() {
                let sum = _mm256_mul_pd(_mm256_mul_pd(sum, first), second);
                let count = _mm256_castpd_si256(_mm256_add_pd(sum, whole));
                units = _mm256_add_epi64(units, _mm256_and_si256(count, mantissa));
            }
            let (low, high) = (
                _mm256_castsi256_si128(units),
                _mm256_extracti128_si256::<1>(units),
            );
            let units = _mm_add_epi64(low, high);
            (_mm_extract_epi64::<0>(units) as u64) + (_mm_extract_epi64::<1>(units) as u64)
        }
        fn signs(self, x: [__m256i; 4], threshold: u32) -> (__m256i, u32) {
            // Magnitudes have 31 bits, so that signed comparisons work.
            let below = self.pattern(threshold - 1);
            let (magnitudes, ones) = (self.pattern(i32::MAX as u32), self.pattern(1));
            let mut signs = x;
            for x in &mut signs {
                let coded = _mm256_cmpgt_epi32(_mm256_and_si256(*x, magnitudes), below);
                let sign = _mm256_or_si256(_mm256_srai_epi32::<31>(*x), ones);
                *x = _mm256_and_si256(coded, sign);
            }
            let [a, b, c, d] = signs;
            let signs = pack(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
            (signs, differ(signs, _mm256_setzero_si256()))
        }
        fn divide_f32(self, x: __m256i, by: __m256i) -> __m256i {
            let (x, by) = (_mm256_castsi256_ps(x), _mm256_castsi256_ps(by));
            _mm256_castps_si256(_mm256_div_ps(x, by))
        }
        fn off(self, x: __m256i) -> __m256i {
            let x = _mm256_castsi256_ps(x);
            let nearest = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
            // Exact: both are within a half, or x is an integer.
            let off = _mm256_castps_si256(_mm256_sub_ps(x, nearest));
            _mm256_and_si256(off, self.pattern(i32::MAX as u32))
        }
        fn round(self, x: __m256i, grid: &Grid) -> __m256i {
            // As in the reference: one step beyond the end. Values below all integers, and NaNs, which the minimum
            // passes through, are converted to the lowest integer, and stay so when they are packed and clipped.
            let above = i16::from(grid.high) - i16::from(grid.zero_point) + 1;
            let x = _mm256_min_ps(_mm256_set1_ps(f32::from(above)), _mm256_castsi256_ps(x));
            _mm256_cvtps_epi32(x)
        }
        fn codes(self, parts: [__m256i; 4], grid: &Grid) -> (__m256i, u32, u32) {
            let [a, b, c, d] = parts;
            let zero_point = _mm256_set1_epi16(grid.zero_point.into());
            let low = _mm256_set1_epi16(grid.low.into());
            let high = _mm256_set1_epi16(grid.high.into());
            let free_ab = _mm256_adds_epi16(_mm256_packs_epi32(a, b), zero_point);
            let free_cd = _mm256_adds_epi16(_mm256_packs_epi32(c, d), zero_point);
            let ab = _mm256_min_epi16(_mm256_max_epi16(free_ab, low), high);
            let cd = _mm256_min_epi16(_mm256_max_epi16(free_cd, low), high);
            let (same_ab, same_cd) = (
                _mm256_cmpeq_epi16(ab, free_ab),
                _mm256_cmpeq_epi16(cd, free_cd),
            );
            let same = _mm256_movemask_epi8(_mm256_packs_epi16(same_ab, same_cd));
            let code = pack(ab, cd);
            let moved = differ(code, _mm256_set1_epi8(grid.zero_point));
            (code, moved, same.count_zeros())
        }
        fn choose(self, table: __m256i, codes: __m256i, shift: u32) -> __m256i {
            let codes = _mm256_srl_epi32(codes, _mm_cvtsi32_si128(shift as i32));
            // It uses only two bits of a lane.
            _mm256_castps_si256(_mm256_permutevar_ps(_mm256_castsi256_ps(table), codes))
        }
        fn pack(self, packed: __m256i, codes: __m256i) -> __m256i {
            // No bit leaves its byte.
            let ones = _mm256_set1_epi8(1);
            _mm256_add_epi8(_mm256_slli_epi16::<2>(packed), _mm256_add_epi8(codes, ones))
        }
        fn ordered(self, x: __m256i) -> __m256i {
            let flips = _mm256_or_si256(_mm256_srai_epi32::<31>(x), self.pattern(1 << 31));
            _mm256_xor_si256(x, flips)
        }
    }
}

/// Returns bytes in order, from two vectors of words that were each packed from two vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn pack(ab: __m256i, cd: __m256i) -> __m256i {
    // Packing works within halves: dword 4h + j has the result of half h of vector j; in order it is dword 2j + h.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order)
}

/// Returns the number of different bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn differ(a: __m256i, b: __m256i) -> u32 {
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)).count_zeros()
}

/// Returns all lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes(x: __m256i) -> [u32; 8] {
    let mut lanes = [0; 8];
    // SAFETY: eight lanes have room there.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), x) };
    lanes
}
