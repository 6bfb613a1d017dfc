//! Floats of blocks, 8 at a time: two-bit codes and digits choose among the products that a block's scale has with each.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use crate::simd::blocks::Decode;

use super::{load_bytes, loops, store, widen};

/// The decoder of a format: whole blocks up to the first whose scale is not finite.
pub(in crate::simd) fn of(format: Format) -> Option<Decode> {
    Some(match format {
        Format::Tq1_0 => tq1_0,
        Format::Tq2_0 => tq2_0,
        Format::Q2_0 => q2_0,
        Format::Q8_0 => q8_0,
        Format::Q4_0 => q4_0,
        other => return loops::decode(other),
    })
}

#[target_feature(enable = "avx2,f16c")]
fn tq1_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<256, 54>(bytes, out, 52, |block, scale, out| {
        let products = halves(scale);
        let out = out.as_chunks_mut::<8>().0;
        // The first of a group's five vectors of floats, and how far apart those are.
        let groups = [(0, 4), (1, 4), (2, 4), (3, 4), (20, 2), (21, 2)];
        for (bytes, (first, step)) in block.as_chunks().0.iter().zip(groups) {
            let mut fraction = _mm256_cvtepu8_epi32(load_bytes(bytes));
            for lane in 0..5 {
                let digit;
                (digit, fraction) = next_digit(fraction);
                store(
                    &mut out[first + step * lane],
                    _mm256_permutevar_ps(products, digit),
                );
            }
        }
        // Four bytes of four digits: a half of a vector has one digit of each.
        let four = [block[48], block[49], block[50], block[51]];
        let four = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(i32::from_le_bytes(four)));
        let four = _mm256_broadcastsi128_si256(four);
        let powers = [
            _mm256_set_epi32(3, 3, 3, 3, 1, 1, 1, 1),
            _mm256_set_epi32(27, 27, 27, 27, 9, 9, 9, 9),
        ];
        for (out, powers) in out[30..].iter_mut().zip(powers) {
            let fraction = _mm256_mullo_epi32(four, powers);
            let fraction = _mm256_and_si256(fraction, _mm256_set1_epi32(0xFF));
            store(out, _mm256_permutevar_ps(products, next_digit(fraction).0));
        }
    })
}

/// The digit before a fraction of 256 times 3, and the fraction that is left.
#[inline]
#[target_feature(enable = "avx2")]
fn next_digit(fraction: __m256i) -> (__m256i, __m256i) {
    let tripled = _mm256_add_epi32(_mm256_add_epi32(fraction, fraction), fraction);
    let digit = _mm256_srli_epi32::<8>(tripled);
    (digit, _mm256_and_si256(tripled, _mm256_set1_epi32(0xFF)))
}

#[target_feature(enable = "avx2,f16c")]
fn tq2_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<256, 66>(bytes, out, 64, |block, scale, out| {
        let products = halves(scale);
        let packed = block.as_chunks::<32>().0;
        for (bytes, out) in packed.iter().zip(out.as_chunks_mut::<128>().0) {
            let out = out.as_chunks_mut::<8>().0;
            for (part, bytes) in bytes.as_chunks().0.iter().enumerate() {
                let codes = _mm256_cvtepu8_epi32(load_bytes(bytes));
                let codes = [
                    codes,
                    _mm256_srli_epi32::<2>(codes),
                    _mm256_srli_epi32::<4>(codes),
                    _mm256_srli_epi32::<6>(codes),
                ];
                for (lane, codes) in codes.into_iter().enumerate() {
                    store(
                        &mut out[4 * lane + part],
                        _mm256_permutevar_ps(products, codes),
                    );
                }
            }
        }
    })
}

#[target_feature(enable = "avx2,f16c")]
fn q2_0(bytes: &[u8], out: &mut [f32]) -> usize {
    let shifts = _mm256_set_epi32(14, 12, 10, 8, 6, 4, 2, 0);
    blocks::<64, 18>(bytes, out, 0, |block, scale, out| {
        let products = halves(scale);
        for (&bytes, out) in block[2..].as_chunks().0.iter().zip(out.as_chunks_mut().0) {
            let codes = _mm256_set1_epi32(u16::from_le_bytes(bytes).into());
            let codes = _mm256_srlv_epi32(codes, shifts);
            store(out, _mm256_permutevar_ps(products, codes));
        }
    })
}

#[target_feature(enable = "avx2,f16c")]
fn q8_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<32, 34>(bytes, out, 0, |block, scale, out| {
        let scale = _mm256_set1_ps(scale);
        for (bytes, out) in block[2..].as_chunks().0.iter().zip(out.as_chunks_mut().0) {
            let codes = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_bytes(bytes)));
            store(out, _mm256_mul_ps(codes, scale));
        }
    })
}

#[target_feature(enable = "avx2,f16c")]
fn q4_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<32, 18>(bytes, out, 0, |block, scale, out| {
        let scale = _mm256_set1_ps(scale);
        let float = |nibble| {
            let code = _mm256_sub_epi32(nibble, _mm256_set1_epi32(8));
            _mm256_mul_ps(_mm256_cvtepi32_ps(code), scale)
        };
        let (low, high) = out.split_at_mut(16);
        let out = low.as_chunks_mut().0.iter_mut().zip(high.as_chunks_mut().0);
        for (bytes, (low, high)) in block[2..].as_chunks().0.iter().zip(out) {
            let bytes = _mm256_cvtepu8_epi32(load_bytes(bytes));
            store(low, float(_mm256_and_si256(bytes, _mm256_set1_epi32(15))));
            store(high, float(_mm256_srli_epi32::<4>(bytes)));
        }
    })
}

/// Copies floats to a place on a boundary of 32 bytes, past the caches; a fence must follow. The lengths are one, whole vectors.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn stream(from: &[f32], to: &mut [f32]) {
    let (to, rest) = to.as_chunks_mut::<8>();
    assert!(to.as_ptr().addr().is_multiple_of(32) && rest.is_empty());
    for (from, to) in from.as_chunks().0.iter().zip(to) {
        // SAFETY: 8 floats lie there, on a boundary.
        unsafe { _mm256_stream_ps(to.as_mut_ptr(), super::load(from)) };
    }
}

/// The products of the codes −1, 0, 1 and 2, in each half; a choice among them looks at two bits of a lane only.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(scale: f32) -> __m256 {
    let codes = _mm256_set_ps(2.0, 1.0, 0.0, -1.0, 2.0, 1.0, 0.0, -1.0);
    _mm256_mul_ps(codes, _mm256_set1_ps(scale))
}

/// Calls `decode` with each block, its scale (which lies at byte `at`) and its place.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn blocks<const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    at: usize,
    decode: impl Fn(&[u8; BYTES], f32, &mut [f32; LEN]),
) -> usize {
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (index, (block, out)) in blocks.zip(out.as_chunks_mut::<LEN>().0).enumerate() {
        match widen([block[at], block[at + 1]]) {
            Some(scale) => decode(block, scale, out),
            None => return index,
        }
    }
    bytes.len() / BYTES
}
