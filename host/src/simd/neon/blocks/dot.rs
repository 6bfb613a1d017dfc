//! Products of blocks with int8 activations, exact.
//!
//! A product of a code of two bits is at most 256 in magnitude and one of four bits 1,024; a lane of 16 bits holds the 32 and the 4 of them that a
//! block adds there. Products of bytes go to 32 bits one by one.

use std::arch::aarch64::*;

use tercet_core::block::Format;

use super::{interleaved, last_trits, load_bytes, nibbles, quarters, trits, widen};

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

#[target_feature(enable = "neon")]
fn tq1_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<256, 54>(bytes, x, 52, |block, x| {
        let x = x.as_chunks().0;
        let mut sum = vdupq_n_s16(0);
        for (bytes, (first, step)) in block.as_chunks().0.iter().zip([(0, 2), (1, 2), (10, 1)]) {
            trits(bytes, |lane, codes| {
                sum = add(sum, codes, &x[first + step * lane])
            });
        }
        let last = last_trits([block[48], block[49], block[50], block[51]]);
        vaddlvq_s16(add(sum, last, &x[15]))
    })
}

#[target_feature(enable = "neon")]
fn tq2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<256, 66>(bytes, x, 64, |block, x| {
        let mut sum = vdupq_n_s16(0);
        for (bytes, x) in block.as_chunks::<32>().0.iter().zip(x.as_chunks::<128>().0) {
            let x = x.as_chunks().0;
            for (part, bytes) in bytes.as_chunks().0.iter().enumerate() {
                for (lane, codes) in quarters(bytes).into_iter().enumerate() {
                    sum = add(sum, codes, &x[2 * lane + part]);
                }
            }
        }
        vaddlvq_s16(sum)
    })
}

#[target_feature(enable = "neon")]
fn q2_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<64, 18>(bytes, x, 0, |block, x| {
        let codes = interleaved(quarters(block.last_chunk().unwrap_or(&[0; 16])));
        let mut sum = vdupq_n_s16(0);
        for (codes, x) in codes.as_chunks().0.iter().zip(x.as_chunks().0) {
            sum = add(sum, load_signed(codes), x);
        }
        vaddlvq_s16(sum)
    })
}

#[target_feature(enable = "neon")]
fn q8_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<32, 34>(bytes, x, 0, |block, x| {
        let mut sum = vdupq_n_s32(0);
        for (codes, x) in block[2..].as_chunks().0.iter().zip(x.as_chunks().0) {
            let (codes, x) = (vreinterpretq_s8_u8(load_bytes(codes)), load_signed(x));
            sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(codes), vget_low_s8(x)));
            sum = vpadalq_s16(sum, vmull_high_s8(codes, x));
        }
        vaddvq_s32(sum)
    })
}

#[target_feature(enable = "neon")]
fn q4_0(bytes: &[u8], x: &[i8]) -> Option<i128> {
    blocks::<32, 18>(bytes, x, 0, |block, x| {
        let codes = nibbles(block.last_chunk().unwrap_or(&[0; 16]));
        let mut sum = vdupq_n_s16(0);
        for (codes, x) in codes.into_iter().zip(x.as_chunks().0) {
            sum = add(sum, codes, x);
        }
        vaddlvq_s16(sum)
    })
}

/// Adds 16 products to 8 lanes.
#[inline]
#[target_feature(enable = "neon")]
fn add(sum: int16x8_t, codes: int8x16_t, x: &[i8; 16]) -> int16x8_t {
    let x = load_signed(x);
    vmlal_high_s8(vmlal_s8(sum, vget_low_s8(codes), vget_low_s8(x)), codes, x)
}

#[inline]
#[target_feature(enable = "neon")]
fn load_signed(x: &[i8; 16]) -> int8x16_t {
    // SAFETY: 16 bytes lie there.
    unsafe { vld1q_s8(x.as_ptr()) }
}

/// Σ scale · 2²⁴ · dot over the blocks.
///
/// A finite f16 times 2²⁴ is an integer below 2⁴⁰ and a block's product below 2¹⁹ in magnitude, so a term has at most 59 bits; their
/// upper and lower halves add up on their own, for up to 2³¹ blocks.
#[inline]
#[target_feature(enable = "neon")]
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
