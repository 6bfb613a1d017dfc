//! Products of blocks with int8 activations, exact.
//!
//! Two-bit codes and ternary digits are multiplied in their stored form, which is one too large, and the sum of the
//! activations is subtracted: a pair of unsigned by signed products is at most 2 · 3 · 128 = 768, and 16 bits hold the
//! 8 of them that are added before they are widened. Bytes and nibbles are widened first, because their pairs no longer
//! fit 16 bits.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use crate::simd::blocks::Dot;

use super::{loops, parts};

use crate::simd::blocks::dot::{Terms, blocks, half};

/// Returns the product of a format's blocks; `None` if a scale is not finite.
pub(in crate::simd) fn of(format: Format) -> Option<Dot> {
    Some(match format {
        Format::Tq1_0 => tq1_0,
        Format::Tq2_0 => tq2_0,
        Format::Q2_0 => q2_0,
        Format::Q8_0 => q8_0,
        Format::Q4_0 => q4_0,
        Format::Q4K | Format::Q6K => return parts::dot(format),
        other => return loops::dot(other),
    })
}

#[target_feature(enable = "avx2,f16c")]
fn tq1_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 54], x: &[i8; 256]| {
        let low = _mm256_set1_epi16(0xFF);
        // The digits of bytes in 16 bits each, as fractions of 256 · 3, with x from `first` on, `step` apart.
        let mut sums = [_mm256_setzero_si256(); 2];
        let groups = [(0usize, 0usize, 32usize), (16, 16, 32), (32, 160, 16)];
        for (at, first, step) in groups {
            let bytes = load_half(block[at..].first_chunk().unwrap_or(&[0; 16]));
            let mut fraction = _mm256_cvtepu8_epi16(bytes);
            for lane in 0..5 {
                let tripled = _mm256_add_epi16(_mm256_add_epi16(fraction, fraction), fraction);
                let digit = _mm256_srli_epi16::<8>(tripled);
                fraction = _mm256_and_si256(tripled, low);
                let x = wide(&x[first + step * lane..]);
                let code = _mm256_sub_epi16(digit, _mm256_set1_epi16(1));
                sums[lane % 2] = _mm256_add_epi32(sums[lane % 2], _mm256_madd_epi16(code, x));
            }
        }
        let four = [block[48], block[49], block[50], block[51]];
        let four = _mm_set1_epi32(i32::from_le_bytes(four));
        let powers = _mm256_set_epi16(27, 27, 27, 27, 9, 9, 9, 9, 3, 3, 3, 3, 1, 1, 1, 1);
        let fraction = _mm256_mullo_epi16(_mm256_cvtepu8_epi16(four), powers);
        let fraction = _mm256_and_si256(fraction, low);
        let digit = _mm256_srli_epi16::<8>(_mm256_mullo_epi16(fraction, _mm256_set1_epi16(3)));
        let code = _mm256_sub_epi16(digit, _mm256_set1_epi16(1));
        let last = _mm256_madd_epi16(code, wide(&x[240..]));
        _mm256_add_epi32(_mm256_add_epi32(sums[0], sums[1]), last)
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Eight, STEP, 256, 54>(bytes, x, 52, dots) }
}

#[target_feature(enable = "avx2,f16c")]
fn tq2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let three = _mm256_set1_epi8(3);
    let dot = |block: &[u8; 66], x: &[i8; 256]| {
        let mut sum = _mm256_setzero_si256();
        for (bytes, x) in block.as_chunks::<32>().0.iter().zip(x.as_chunks::<128>().0) {
            let x = x.as_chunks::<32>().0;
            let packed = load(bytes);
            let codes = [
                packed,
                _mm256_srli_epi16::<2>(packed),
                _mm256_srli_epi16::<4>(packed),
                _mm256_srli_epi16::<6>(packed),
            ];
            for (codes, x) in codes.into_iter().zip(x) {
                sum = _mm256_add_epi16(
                    sum,
                    less_one(_mm256_and_si256(codes, three), load_signed(x)),
                );
            }
        }
        _mm256_madd_epi16(sum, _mm256_set1_epi16(1))
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Eight, STEP, 256, 66>(bytes, x, 64, dots) }
}

#[target_feature(enable = "avx2,f16c")]
fn q2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 18], x: &[i8; 64]| {
        let mut sum = _mm256_setzero_si256();
        for (bytes, x) in block[2..].as_chunks().0.iter().zip(x.as_chunks().0) {
            // Moves a byte's codes to the lowest bits of four bytes in two steps, from 4 bits to 16 and from 2 to 8.
            let bytes = _mm256_cvtepu8_epi32(super::load_bytes(bytes));
            let halves = _mm256_or_si256(bytes, _mm256_slli_epi32::<12>(bytes));
            let spread = _mm256_or_si256(halves, _mm256_slli_epi32::<6>(halves));
            let codes = _mm256_and_si256(spread, _mm256_set1_epi8(3));
            sum = _mm256_add_epi16(sum, less_one(codes, load_signed(x)));
        }
        _mm256_madd_epi16(sum, _mm256_set1_epi16(1))
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Eight, STEP, 64, 18>(bytes, x, 0, dots) }
}

#[target_feature(enable = "avx2,f16c")]
fn q8_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 34], x: &[i8; 32]| {
        let mut sum = _mm256_setzero_si256();
        for (codes, x) in block[2..].as_chunks().0.iter().zip(x.as_chunks::<16>().0) {
            let codes = _mm256_cvtepi8_epi16(load_half(codes));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes, wide(x)));
        }
        sum
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Eight, STEP, 32, 34>(bytes, x, 0, dots) }
}

#[target_feature(enable = "avx2,f16c")]
fn q4_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let dot = |block: &[u8; 18], x: &[i8; 32]| {
        let packed = load_half(block.last_chunk().unwrap_or(&[0; 16]));
        let both = _mm256_set_m128i(_mm_srli_epi16::<4>(packed), packed);
        let nibbles = _mm256_and_si256(both, _mm256_set1_epi8(15));
        let x = load_signed(x);
        // At most 2 · 15 · 128 = 3,840 per pair, and 8 · 256 subtracted.
        let eight = _mm256_maddubs_epi16(_mm256_set1_epi8(8), x);
        let products = _mm256_sub_epi16(_mm256_maddubs_epi16(nibbles, x), eight);
        _mm256_madd_epi16(products, _mm256_set1_epi16(1))
    };
    let dots = |blocks: &[_], x: &[_]| each(blocks, x, dot);
    // SAFETY: the set runs where this function may be called.
    unsafe { blocks::<Eight, STEP, 32, 18>(bytes, x, 0, dots) }
}

/// Returns Σ (code − 1)·x of pairs.
#[inline]
#[target_feature(enable = "avx2")]
fn less_one(codes: __m256i, x: __m256i) -> __m256i {
    _mm256_sub_epi16(
        _mm256_maddubs_epi16(codes, x),
        _mm256_maddubs_epi16(_mm256_set1_epi8(1), x),
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_half(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes lie there.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes lie there.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_signed(x: &[i8; 32]) -> __m256i {
    // SAFETY: 32 bytes lie there.
    unsafe { _mm256_loadu_si256(x.as_ptr().cast()) }
}

/// Returns the first 16 activations in 16 bits each.
#[inline]
#[target_feature(enable = "avx2")]
fn wide(x: &[i8]) -> __m256i {
    let x = x.first_chunk::<16>().unwrap_or(&[0; 16]);
    // SAFETY: 16 bytes lie there.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(x.as_ptr().cast()) })
}

/// Computes the products of the blocks of a full or partial step, from the lanes of each.
#[inline]
#[target_feature(enable = "avx2")]
fn each<const LEN: usize, const BYTES: usize>(
    blocks: &[[u8; BYTES]],
    x: &[[i8; LEN]],
    dot: impl Fn(&[u8; BYTES], &[i8; LEN]) -> __m256i,
) -> __m256i {
    let mut sums = [_mm256_setzero_si256(); STEP];
    for ((sum, block), x) in sums.iter_mut().zip(blocks).zip(x) {
        *sum = dot(block, x);
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let four = |a, b, c, d| _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let (low, high) = (four(a, b, c, d), four(e, f, g, h));
    // Each half has a part of four of them.
    _mm256_add_epi32(
        _mm256_permute2x128_si256::<0x20>(low, high),
        _mm256_permute2x128_si256::<0x31>(low, high),
    )
}

/// Blocks at a time.
const STEP: usize = 8;

/// Terms in two parts: the upper part of a scale times a product, in units of 2²⁰, and the lower part times it: 40 bits
/// each.
#[derive(Clone, Copy)]
struct Eight {
    upper: __m256i,
    lower: __m256i,
    /// All ones for scales with all ones in the exponent: infinity or NaN.
    wide: __m128i,
}

impl Terms for Eight {
    type Dots = __m256i;

    #[inline(always)]
    unsafe fn none() -> Self {
        // SAFETY: the set runs here.
        unsafe {
            Self {
                upper: _mm256_setzero_si256(),
                lower: _mm256_setzero_si256(),
                wide: _mm_setzero_si128(),
            }
        }
    }

    #[inline(always)]
    unsafe fn plus(mut self, dots: __m256i, scales: *const u8, apart: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let exponent = _mm_set1_epi16(0x7C00);
            let halves = halves(scales, apart);
            let wide = _mm_cmpeq_epi16(_mm_and_si128(halves, exponent), exponent);
            self.wide = _mm_or_si128(self.wide, wide);
            // The part below 2²⁰, then the rest, in units of 2⁻²⁰: every step is exact.
            let scales = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(16.0));
            let upper = _mm256_cvttps_epi32(scales);
            let rest = _mm256_sub_ps(scales, _mm256_cvtepi32_ps(upper));
            let lower = _mm256_cvttps_epi32(_mm256_mul_ps(rest, _mm256_set1_ps(1_048_576.0)));
            self.upper = _mm256_add_epi64(self.upper, products(upper, dots));
            self.lower = _mm256_add_epi64(self.lower, products(lower, dots));
        }
        self
    }

    #[inline(always)]
    unsafe fn total(self) -> Option<i128> {
        let mut sums = [[0i64; 4]; 2];
        // SAFETY: the set runs here; four sums have room.
        unsafe {
            if _mm_movemask_epi8(self.wide) != 0 {
                return None;
            }
            _mm256_storeu_si256(sums[0].as_mut_ptr().cast(), self.upper);
            _mm256_storeu_si256(sums[1].as_mut_ptr().cast(), self.lower);
        }
        let [upper, lower] = sums.map(|sums| i128::from(sums.iter().sum::<i64>()));
        Some((upper << 20) + lower)
    }
}

/// Returns the products of lanes, with two neighbours summed.
#[inline]
#[target_feature(enable = "avx2")]
fn products(a: __m256i, b: __m256i) -> __m256i {
    let odd = _mm256_mul_epi32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
    _mm256_add_epi64(_mm256_mul_epi32(a, b), odd)
}

/// Returns the scales in their stored form.
///
/// # Safety
/// Eight scales lie there; the set runs here.
#[inline(always)]
unsafe fn halves(at: *const u8, apart: usize) -> __m128i {
    macro_rules! halves {
        ($($block:literal)*) => {
            // SAFETY: the caller's promise.
            unsafe { _mm_setr_epi16($(half(at.add($block * apart)).cast_signed()),*) }
        };
    }
    halves!(0 1 2 3 4 5 6 7)
}
