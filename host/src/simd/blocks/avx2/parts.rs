//! Products of Q4_K and Q6_K: `vpmaddubsw` of 32 codes and activations, `vpmaddwd` of its sums of pairs with the parts'
//! factors.
//!
//! A pair is at most 2 · 63 · 128 = 16,128 in magnitude, which 16 bits hold; times a factor of 2⁷, two of them stay
//! below 2²²; a block adds eight of these: below 2²⁵ per lane.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use crate::simd::blocks::codes::{Q4K, Q6K};
use crate::simd::blocks::{Dot, parts};
use crate::simd::linear::{Activations, Rows, Vector};

/// Returns the product of a format's blocks; `None` for a format whose blocks have one part.
pub(in crate::simd) fn dot(format: Format) -> Option<Dot> {
    #[target_feature(enable = "avx2")]
    fn q4_k(bytes: &[u8], x: &[i8]) -> Option<i128> {
        parts::dot::<Q4K, 144>(bytes, x, |block, x, sums| q4_k_products(block, x, sums))
    }
    #[target_feature(enable = "avx2")]
    fn q6_k(bytes: &[u8], x: &[i8]) -> Option<i128> {
        parts::dot::<Q6K, 210>(bytes, x, |block, x, sums| q6_k_products(block, x, sums))
    }
    match format {
        Format::Q4K => Some(q4_k),
        Format::Q6K => Some(q6_k),
        _ => None,
    }
}

/// Returns the kernel for rows of a format times a vector; `None` for a format whose blocks have one part.
pub(in crate::simd) fn vector(format: Format) -> Option<Vector> {
    #[target_feature(enable = "avx2")]
    fn q4_k(bytes: &[u8], x: &Activations, out: &mut [i64]) {
        parts::rows::<Q4K, 144>(bytes, x, out, |block, x, sums| {
            q4_k_products(block, x, sums)
        });
    }
    #[target_feature(enable = "avx2")]
    fn q6_k(bytes: &[u8], x: &Activations, out: &mut [i64]) {
        parts::rows::<Q6K, 210>(bytes, x, out, |block, x, sums| {
            q6_k_products(block, x, sums)
        });
    }
    match format {
        Format::Q4K => Some(Vector {
            prepare: parts::prepare::<Q4K, 144>,
            rows: Rows::Wide(q4_k),
        }),
        Format::Q6K => Some(Vector {
            prepare: parts::prepare::<Q6K, 210>,
            rows: Rows::Wide(q6_k),
        }),
        _ => None,
    }
}

/// As [`parts::products`].
#[inline]
#[target_feature(enable = "avx2")]
fn q4_k_products(block: &[u8; 144], x: &[i8; 256], sums: &[i32; 16]) -> (i32, i32) {
    let word =
        |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let (scales, mins, both) = (word(4), word(8), word(12));
    // Four six-bit factors per word: two above the low six bits of an earlier one, four in `both`.
    let whole = |word: u32| word & 0x3F3F_3F3F;
    let parted = |low: u32, high: u32| low & 0x0F0F_0F0F | (high >> 6 & 0x0303_0303) << 4;
    let eight =
        |first: u32, second: u32| _mm_set_epi32(0, 0, second.cast_signed(), first.cast_signed());
    let factors = _mm_cvtepu8_epi16(eight(whole(scales), parted(both, scales)));
    let factors = _mm256_broadcastsi128_si256(factors);
    let mut found = _mm256_setzero_si256();
    for (chunk, x) in x.as_chunks::<64>().0.iter().enumerate() {
        let packed = load(&block[16 + 32 * chunk..]);
        let nibbles = _mm256_set1_epi8(15);
        let codes = [
            _mm256_and_si256(packed, nibbles),
            _mm256_and_si256(_mm256_srli_epi16::<4>(packed), nibbles),
        ];
        for (half, (codes, x)) in codes.into_iter().zip(x.as_chunks::<32>().0).enumerate() {
            // The two bytes of a factor, in every lane.
            let part = 2 * chunk + half;
            let bytes = _mm256_set1_epi16((0x0100 + 0x0101 * 2 * part) as i16);
            let factors = _mm256_shuffle_epi8(factors, bytes);
            let pairs = _mm256_maddubs_epi16(codes, load_signed(x));
            found = _mm256_add_epi32(found, _mm256_madd_epi16(pairs, factors));
        }
    }
    let mins = _mm256_cvtepu8_epi32(eight(whole(mins), parted(both >> 4, mins)));
    let [dot, sum] = two_totals(found, _mm256_mullo_epi32(mins, load_sums(&sums[..8])));
    (dot, -sum)
}

/// As [`parts::products`].
#[inline]
#[target_feature(enable = "avx2")]
fn q6_k_products(block: &[u8; 210], x: &[i8; 256], sums: &[i32; 16]) -> (i32, i32) {
    let bytes: &[u8; 16] = block[192..].first_chunk().unwrap_or(&[0; 16]);
    // SAFETY: sixteen bytes lie there.
    let factors = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    let mut found = _mm256_setzero_si256();
    for (half, x) in x.as_chunks::<128>().0.iter().enumerate() {
        let (first, second) = (load(&block[64 * half..]), load(&block[64 * half + 32..]));
        let high = load(&block[128 + 32 * half..]);
        let (nibbles, above) = (_mm256_set1_epi8(15), _mm256_set1_epi8(48));
        let code = |low, high| {
            _mm256_or_si256(
                _mm256_and_si256(low, nibbles),
                _mm256_and_si256(high, above),
            )
        };
        let codes = [
            code(first, _mm256_slli_epi16::<4>(high)),
            code(second, _mm256_slli_epi16::<2>(high)),
            code(_mm256_srli_epi16::<4>(first), high),
            code(_mm256_srli_epi16::<4>(second), _mm256_srli_epi16::<2>(high)),
        ];
        for (row, (codes, x)) in codes.into_iter().zip(x.as_chunks::<32>().0).enumerate() {
            // A factor for every sixteen codes.
            let part = (8 * half + 2 * row) as i64 * 0x0101_0101_0101_0101;
            let places = _mm_set_epi64x(part + 0x0101_0101_0101_0101, part);
            let factors = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(factors, places));
            let pairs = _mm256_maddubs_epi16(codes, load_signed(x));
            found = _mm256_add_epi32(found, _mm256_madd_epi16(pairs, factors));
        }
    }
    // Codes are larger than weights by 32.
    let more = _mm256_add_epi32(
        _mm256_mullo_epi32(_mm256_cvtepi8_epi32(factors), load_sums(&sums[..8])),
        _mm256_mullo_epi32(
            _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(factors, factors)),
            load_sums(&sums[8..]),
        ),
    );
    let found = _mm256_sub_epi32(found, _mm256_slli_epi32::<5>(more));
    let [dot, _] = two_totals(found, found);
    (dot, 0)
}

/// Loads the first 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8]) -> __m256i {
    let bytes: &[u8; 32] = bytes.first_chunk().unwrap_or(&[0; 32]);
    // SAFETY: 32 bytes lie there.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_signed(x: &[i8; 32]) -> __m256i {
    // SAFETY: 32 bytes lie there.
    unsafe { _mm256_loadu_si256(x.as_ptr().cast()) }
}

/// Loads the first eight sums.
#[inline]
#[target_feature(enable = "avx2")]
fn load_sums(sums: &[i32]) -> __m256i {
    let sums: &[i32; 8] = sums.first_chunk().unwrap_or(&[0; 8]);
    // SAFETY: eight sums lie there.
    unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) }
}

/// Returns the totals of two vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn two_totals(a: __m256i, b: __m256i) -> [i32; 2] {
    let pairs = _mm256_hadd_epi32(a, b);
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(pairs),
        _mm256_extracti128_si256::<1>(pairs),
    );
    let two = _mm_hadd_epi32(four, four);
    [_mm_cvtsi128_si32(two), _mm_extract_epi32::<1>(two)]
}
