//! Products of blocks with int8 activations, exact.
//!
//! Two-bit codes and ternary digits are multiplied as they are stored, one too large, and the sum of the activations is taken away: a
//! pair of unsigned by signed products is at most 2 · 3 · 128 = 768, and 16 bits hold the 8 of them that are added before they are
//! widened. Bytes and nibbles are widened first, since their pairs fit 16 bits no more.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::widen;

/// The product of a format's blocks; `None` where a scale is not finite.
pub(in crate::simd) fn of(format: Format) -> unsafe fn(&[u8], &[i8]) -> Option<i128> {
    match format {
        Format::Tq1_0 => tq1_0,
        Format::Tq2_0 => tq2_0,
        Format::Q2_0 => q2_0,
        Format::Q8_0 => q8_0,
        Format::Q4_0 => q4_0,
    }
}

#[target_feature(enable = "avx2,f16c")]
fn tq1_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<256, 54>(bytes, x, 52, |block, x| {
        let low = _mm256_set1_epi16(0xFF);
        // The digits of bytes in 16 bits each, as fractions of 256 · 3, against x from `first` on, `step` apart.
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
        total(_mm256_add_epi32(_mm256_add_epi32(sums[0], sums[1]), last))
    })
}

#[target_feature(enable = "avx2,f16c")]
fn tq2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    let three = _mm256_set1_epi8(3);
    blocks::<256, 66>(bytes, x, 64, |block, x| {
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
        total(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)))
    })
}

#[target_feature(enable = "avx2,f16c")]
fn q2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<64, 18>(bytes, x, 0, |block, x| {
        let mut sum = _mm256_setzero_si256();
        for (bytes, x) in block[2..].as_chunks().0.iter().zip(x.as_chunks().0) {
            // A byte's codes to the lowest bits of four: two steps, from 4 bits to 16 and from 2 to 8.
            let bytes = _mm256_cvtepu8_epi32(super::load_bytes(bytes));
            let halves = _mm256_or_si256(bytes, _mm256_slli_epi32::<12>(bytes));
            let spread = _mm256_or_si256(halves, _mm256_slli_epi32::<6>(halves));
            let codes = _mm256_and_si256(spread, _mm256_set1_epi8(3));
            sum = _mm256_add_epi16(sum, less_one(codes, load_signed(x)));
        }
        total(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)))
    })
}

#[target_feature(enable = "avx2,f16c")]
fn q8_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<32, 34>(bytes, x, 0, |block, x| {
        let mut sum = _mm256_setzero_si256();
        for (codes, x) in block[2..].as_chunks().0.iter().zip(x.as_chunks::<16>().0) {
            let codes = _mm256_cvtepi8_epi16(load_half(codes));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes, wide(x)));
        }
        total(sum)
    })
}

#[target_feature(enable = "avx2,f16c")]
fn q4_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<32, 18>(bytes, x, 0, |block, x| {
        let packed = load_half(block.last_chunk().unwrap_or(&[0; 16]));
        let both = _mm256_set_m128i(_mm_srli_epi16::<4>(packed), packed);
        let nibbles = _mm256_and_si256(both, _mm256_set1_epi8(15));
        let x = load_signed(x);
        // At most 2 · 15 · 128 = 3,840 a pair, and 8 · 256 taken away.
        let eight = _mm256_maddubs_epi16(_mm256_set1_epi8(8), x);
        let products = _mm256_sub_epi16(_mm256_maddubs_epi16(nibbles, x), eight);
        total(_mm256_madd_epi16(products, _mm256_set1_epi16(1)))
    })
}

/// Σ (code − 1)·x of pairs.
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

/// The first 16 activations in 16 bits each.
#[inline]
#[target_feature(enable = "avx2")]
fn wide(x: &[i8]) -> __m256i {
    let x = x.first_chunk::<16>().unwrap_or(&[0; 16]);
    // SAFETY: 16 bytes lie there.
    _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(x.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn total(sums: __m256i) -> i32 {
    let sums = _mm_add_epi32(
        _mm256_castsi256_si128(sums),
        _mm256_extracti128_si256::<1>(sums),
    );
    let sums = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
    _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_shuffle_epi32::<1>(sums)))
}

/// Σ scale · 2²⁴ · dot over the blocks.
///
/// A finite f16 times 2²⁴ is an integer below 2⁴⁰ and a block's product below 2¹⁹ in magnitude, so a term has at most 59 bits; their
/// upper and lower halves add up on their own, for up to 2³¹ blocks.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn blocks<const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    x: &[i8],
    at: usize,
    dot: impl Fn(&[u8; BYTES], &[i8; LEN]) -> i32,
) -> Option<i128> {
    let (mut upper, mut lower) = (0i64, 0i64);
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (block, x) in blocks.zip(x.as_chunks::<LEN>().0) {
        let scale = widen([block[at], block[at + 1]])?;
        let term = (scale * 16_777_216.0) as i64 * i64::from(dot(block, x));
        upper += term >> 32;
        lower += term & 0xFFFF_FFFF;
    }
    Some((i128::from(upper) << 32) + i128::from(lower))
}
