//! Decodes blocks to floats, 16 at a time.

use std::arch::aarch64::*;

use tercet_core::block::Format;

use crate::simd::blocks::Decode;

use super::{interleaved, last_trits, load_bytes, loops, nibbles, quarters, trits, widen};

/// Returns the decoder of a format: it decodes whole blocks up to the first whose scale is not finite.
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

#[target_feature(enable = "neon")]
fn tq1_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<256, 54>(bytes, out, 52, |block, scale, out| {
        let out = out.as_chunks_mut().0;
        for (bytes, (first, step)) in block.as_chunks().0.iter().zip([(0, 2), (1, 2), (10, 1)]) {
            trits(bytes, |lane, codes| {
                put(&mut out[first + step * lane], codes, scale)
            });
        }
        let last = last_trits([block[48], block[49], block[50], block[51]]);
        put(&mut out[15], last, scale);
    })
}

#[target_feature(enable = "neon")]
fn tq2_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<256, 66>(bytes, out, 64, |block, scale, out| {
        let packed = block.as_chunks::<32>().0;
        for (bytes, out) in packed.iter().zip(out.as_chunks_mut::<128>().0) {
            let out = out.as_chunks_mut().0;
            for (part, bytes) in bytes.as_chunks().0.iter().enumerate() {
                for (lane, codes) in quarters(bytes).into_iter().enumerate() {
                    put(&mut out[2 * lane + part], codes, scale);
                }
            }
        }
    })
}

#[target_feature(enable = "neon")]
fn q2_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<64, 18>(bytes, out, 0, |block, scale, out| {
        let codes = interleaved(quarters(block.last_chunk().unwrap_or(&[0; 16])));
        for (codes, out) in codes.as_chunks::<16>().0.iter().zip(out.as_chunks_mut().0) {
            let codes = codes.map(|code| code as u8);
            put(out, vreinterpretq_s8_u8(load_bytes(&codes)), scale);
        }
    })
}

#[target_feature(enable = "neon")]
fn q8_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<32, 34>(bytes, out, 0, |block, scale, out| {
        for (codes, out) in block[2..].as_chunks().0.iter().zip(out.as_chunks_mut().0) {
            put(out, vreinterpretq_s8_u8(load_bytes(codes)), scale);
        }
    })
}

#[target_feature(enable = "neon")]
fn q4_0(bytes: &[u8], out: &mut [f32]) -> usize {
    blocks::<32, 18>(bytes, out, 0, |block, scale, out| {
        let codes = nibbles(block.last_chunk().unwrap_or(&[0; 16]));
        for (codes, out) in codes.into_iter().zip(out.as_chunks_mut().0) {
            put(out, codes, scale);
        }
    })
}

/// Writes codes times the scale.
#[inline]
#[target_feature(enable = "neon")]
fn put(out: &mut [f32; 16], codes: int8x16_t, scale: f32) {
    let (low, high) = (vmovl_s8(vget_low_s8(codes)), vmovl_high_s8(codes));
    let codes = [
        vmovl_s16(vget_low_s16(low)),
        vmovl_high_s16(low),
        vmovl_s16(vget_low_s16(high)),
        vmovl_high_s16(high),
    ];
    for (out, codes) in out.as_chunks_mut::<4>().0.iter_mut().zip(codes) {
        // SAFETY: 4 floats lie there.
        unsafe { vst1q_f32(out.as_mut_ptr(), vmulq_n_f32(vcvtq_f32_s32(codes), scale)) };
    }
}

/// Calls `decode` with each block, its scale (at byte `at`) and its place.
#[inline]
#[target_feature(enable = "neon")]
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
