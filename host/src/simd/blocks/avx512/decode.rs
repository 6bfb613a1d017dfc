//! Floats of blocks, 16 at a time: codes of two or four bits choose among the products that a block's scale has with each.

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

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn tq1_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<256, 54>(bytes, out, 52, |block, scale, out| {
        let products = quarters(scale);
        let out = out.as_chunks_mut::<16>().0;
        for (bytes, (first, step)) in block.as_chunks().0.iter().zip([(0, 2), (1, 2), (10, 1)]) {
            let mut fraction = _mm512_cvtepu8_epi32(load_bytes(bytes));
            for lane in 0..5 {
                let digit;
                (digit, fraction) = next_digit(fraction);
                store(
                    &mut out[first + step * lane],
                    _mm512_permutevar_ps(products, digit),
                );
            }
        }
        // Four bytes of four digits: a quarter of the vector has one digit of each.
        let four = [block[48], block[49], block[50], block[51]];
        let four = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(i32::from_le_bytes(four)));
        let powers = _mm512_set_epi32(27, 27, 27, 27, 9, 9, 9, 9, 3, 3, 3, 3, 1, 1, 1, 1);
        let fraction = _mm512_mullo_epi32(_mm512_broadcast_i32x4(four), powers);
        let fraction = _mm512_and_si512(fraction, _mm512_set1_epi32(0xFF));
        store(
            &mut out[15],
            _mm512_permutevar_ps(products, next_digit(fraction).0),
        );
    })
}

/// The digit before a fraction of 256 times 3, and the fraction that is left.
#[inline]
#[target_feature(enable = "avx512f")]
fn next_digit(fraction: __m512i) -> (__m512i, __m512i) {
    let tripled = _mm512_add_epi32(_mm512_add_epi32(fraction, fraction), fraction);
    let digit = _mm512_srli_epi32::<8>(tripled);
    (digit, _mm512_and_si512(tripled, _mm512_set1_epi32(0xFF)))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn tq2_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<256, 66>(bytes, out, 64, |block, scale, out| {
        let products = quarters(scale);
        let halves = block.as_chunks::<32>().0;
        for (bytes, out) in halves.iter().zip(out.as_chunks_mut::<128>().0) {
            let out = out.as_chunks_mut::<16>().0;
            for (part, bytes) in bytes.as_chunks().0.iter().enumerate() {
                let codes = _mm512_cvtepu8_epi32(load_bytes(bytes));
                let codes = [
                    codes,
                    _mm512_srli_epi32::<2>(codes),
                    _mm512_srli_epi32::<4>(codes),
                    _mm512_srli_epi32::<6>(codes),
                ];
                for (lane, codes) in codes.into_iter().enumerate() {
                    store(
                        &mut out[2 * lane + part],
                        _mm512_permutevar_ps(products, codes),
                    );
                }
            }
        }
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn q2_0(bytes: &[u8], out: &mut [f32]) -> usize {
    let shifts = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    blocks::<64, 18>(bytes, out, 0, |block, scale, out| {
        let products = quarters(scale);
        for (&bytes, out) in block[2..].as_chunks().0.iter().zip(out.as_chunks_mut().0) {
            let codes = _mm512_srlv_epi32(_mm512_set1_epi32(i32::from_le_bytes(bytes)), shifts);
            store(out, _mm512_permutevar_ps(products, codes));
        }
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn q8_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<32, 34>(bytes, out, 0, |block, scale, out| {
        let scale = _mm512_set1_ps(scale);
        for (bytes, out) in block[2..].as_chunks().0.iter().zip(out.as_chunks_mut().0) {
            let codes = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_bytes(bytes)));
            store(out, _mm512_mul_ps(codes, scale));
        }
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
fn q4_0(bytes: &[u8], out: &mut [f32]) -> usize {
    let codes = _mm512_set_ps(
        7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0,
    );
    blocks::<32, 18>(bytes, out, 0, |block, scale, out| {
        let products = _mm512_mul_ps(codes, _mm512_set1_ps(scale));
        if let (Some(bytes), [low, high]) = (block.last_chunk(), out.as_chunks_mut().0) {
            // The choice looks at four bits of a lane only.
            let nibbles = _mm512_cvtepu8_epi32(load_bytes(bytes));
            store(low, _mm512_permutexvar_ps(nibbles, products));
            store(
                high,
                _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(nibbles), products),
            );
        }
    })
}

/// The products of the codes −1, 0, 1 and 2, in each quarter; a choice among them looks at two bits of a lane only.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters(scale: f32) -> __m512 {
    _mm512_mul_ps(
        _mm512_broadcast_f32x4(_mm_set_ps(2.0, 1.0, 0.0, -1.0)),
        _mm512_set1_ps(scale),
    )
}

/// Calls `decode` with each block, its scale (which lies at byte `at`) and its place.
#[inline]
#[target_feature(enable = "avx512f,f16c")]
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
