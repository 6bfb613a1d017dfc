//! Ternary codes and their scale, 32 values at a time.
//!
//! A code plus 1 is the number of bounds in (−least, least) that the value is not below. Comparisons give −1 if true,
//! so their sum is subtracted.

use std::arch::x86_64::*;

use super::{load, narrow, store_bytes};
use crate::simd::blocks::Cut;

/// A [`Cut`] in registers.
#[derive(Clone, Copy)]
struct Test {
    factor: __m256,
    least: __m256,
    most: __m256,
}

impl Test {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(cut: Cut) -> Self {
        Self {
            factor: _mm256_set1_ps(cut.factor),
            least: _mm256_set1_ps(cut.least),
            most: _mm256_set1_ps(-cut.least),
        }
    }

    /// Returns −1 − code of 32 values, a byte each, in groups of four in the order of [`ordered`]. A bound that is NaN
    /// makes all codes 0.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn negated(self, values: &[f32; 32]) -> __m256i {
        let mut parts = [_mm256_setzero_si256(); 4];
        for (part, x) in parts.iter_mut().zip(values.as_chunks().0) {
            let x = _mm256_mul_ps(load(x), self.factor);
            *part = _mm256_add_epi32(
                _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(x, self.least)),
                _mm256_castps_si256(_mm256_cmp_ps::<_CMP_NLE_UQ>(x, self.most)),
            );
        }
        let [a, b, c, d] = parts;
        _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
    }
}

/// Restores the order of bytes: each half has four of each of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn ordered(bytes: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(bytes, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0))
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "avx2,f16c")]
pub(in crate::simd) fn tq2_0(
    values: &[f32; 256],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 66],
) -> bool {
    let test = Test::new(cut);
    let (packed, tail) = block.as_chunks_mut::<32>();
    for (half, packed) in values.as_chunks::<128>().0.iter().zip(packed) {
        // The last lane first, so that the ones before move it up.
        let mut bytes = _mm256_setzero_si256();
        for values in half.as_chunks::<32>().0.iter().rev() {
            // No bit leaves its byte: the shifted values are below 2⁶.
            bytes = _mm256_sub_epi8(_mm256_slli_epi16::<2>(bytes), test.negated(values));
        }
        store_bytes(packed, ordered(bytes));
    }
    put(scale, tail)
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "avx2,f16c")]
pub(in crate::simd) fn tq1_0(
    values: &[f32; 256],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 54],
) -> bool {
    let test = Test::new(cut);
    let values = values.as_chunks::<32>().0;
    let thrice = |x| _mm256_add_epi8(_mm256_add_epi8(x, x), x);
    let mut bytes = _mm256_setzero_si256();
    for values in &values[..5] {
        bytes = _mm256_sub_epi8(thrice(bytes), test.negated(values));
    }
    let (packed, rest) = block.split_at_mut(32);
    if let Some(packed) = packed.first_chunk_mut() {
        store_bytes(packed, fractions(ordered(bytes)));
    }
    // Two lanes of 16 bytes each: 0 and 1, 2 and 3, 4 and the last 16 values.
    let [a, b, c] = [5, 6, 7].map(|i| ordered(test.negated(&values[i])));
    let upper = |x| _mm256_extracti128_si256::<1>(x);
    let lower = |x| _mm256_castsi256_si128(x);
    let mut bytes = _mm_setzero_si128();
    for lane in [lower(a), upper(a), lower(b), upper(b), lower(c)] {
        bytes = _mm_sub_epi8(_mm_add_epi8(_mm_add_epi8(bytes, bytes), bytes), lane);
    }
    // The last 16 values are four digits each of four bytes; the four bytes of a digit are one integer, and no byte
    // overflows.
    let mut last = [0u32; 4];
    // SAFETY: 16 bytes lie there.
    unsafe {
        _mm_storeu_si128(
            last.as_mut_ptr().cast(),
            _mm_sub_epi8(_mm_setzero_si128(), upper(c)),
        )
    };
    let last = last.iter().fold(0, |sum, digits| sum * 3 + digits) * 3;
    let bytes = fractions(_mm256_set_m128i(_mm_cvtsi32_si128(last as i32), bytes));
    let mut out = [0; 32];
    store_bytes(&mut out, bytes);
    let (packed, tail) = rest.split_at_mut(20);
    packed.copy_from_slice(&out[..20]);
    put(scale, tail)
}

/// Returns ⌈256·v / 243⌉ = v + ⌊n / 243⌋ for v < 243, with n = 13·v + 242 at most 3,388.
///
/// The division is by 2²³ / 34,522: too large by 238/2²³ of n, and n · 238 < 2²³ keeps the quotient's whole part. The
/// product uses 16·n, which fits 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn fractions(v: __m256i) -> __m256i {
    let quotient = |v| {
        let n = _mm256_mullo_epi16(v, _mm256_set1_epi16(16 * 13));
        let n = _mm256_add_epi16(n, _mm256_set1_epi16(16 * 242));
        let product = _mm256_mulhi_epu16(n, _mm256_set1_epi16(34_522_u16 as i16));
        _mm256_srli_epi16::<{ 23 - 16 + 4 }>(product)
    };
    let even = quotient(_mm256_and_si256(v, _mm256_set1_epi16(0xFF)));
    let odd = quotient(_mm256_srli_epi16::<8>(v));
    _mm256_add_epi8(v, _mm256_or_si256(even, _mm256_slli_epi16::<8>(odd)))
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "avx2,f16c")]
pub(in crate::simd) fn q2_0(
    values: &[f32; 64],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 18],
) -> bool {
    let test = Test::new(cut);
    let (head, packed) = block.split_at_mut(2);
    for (values, packed) in values
        .as_chunks::<32>()
        .0
        .iter()
        .zip(packed.as_chunks_mut::<8>().0)
    {
        let codes = _mm256_sub_epi8(_mm256_setzero_si256(), test.negated(values));
        // Pairs, then fours: an integer of 32 bits holds a byte. Its lane within a half identifies its vector.
        let pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(4 << 8 | 1));
        let bytes = ordered(_mm256_madd_epi16(pairs, _mm256_set1_epi32(16 << 16 | 1)));
        let words = _mm256_packus_epi32(bytes, bytes);
        let bytes = _mm256_packus_epi16(words, words);
        let (low, high) = (
            _mm256_castsi256_si128(bytes),
            _mm256_extracti128_si256::<1>(bytes),
        );
        packed[..4].copy_from_slice(&_mm_cvtsi128_si32(low).to_le_bytes());
        packed[4..].copy_from_slice(&_mm_cvtsi128_si32(high).to_le_bytes());
    }
    put(scale, head)
}

/// Writes a scale to two bytes; false if it overflows.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn put(scale: f32, out: &mut [u8]) -> bool {
    match narrow(scale) {
        Some(bytes) => {
            out.copy_from_slice(&bytes);
            true
        }
        None => false,
    }
}
