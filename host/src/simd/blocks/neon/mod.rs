//! GGUF block formats.

mod decode;
mod dot;
mod encode;
mod lanes;
mod pack;

use std::arch::aarch64::*;

use tercet_core::block::Format;

use crate::simd::blocks::{Blocks, Encode, by_loops, values};
use crate::simd::neon::vectors::Neon;

/// The kernels of blocks.
pub(in crate::simd) const KERNELS: Blocks = Blocks {
    values: values::kernels!(Neon, "neon"),
    tq1_0: pack::tq1_0,
    tq2_0: pack::tq2_0,
    q2_0: pack::q2_0,
    encode,
    decode: decode::of,
    dot: dot::of,
    stream: None,
};

by_loops!(crate::simd::neon::vectors::Neon, "neon": decode, dot, encode);

/// Returns the encoder of a format that is not ternary.
fn encode(format: Format) -> Option<Encode> {
    match format {
        Format::Q8_0 => Some(encode::q8_0),
        Format::Q4_0 => Some(encode::q4_0),
        other => loops::encode(other),
    }
}

use half::f16;
use tercet_core::number::Element;

/// Loads 4 floats.
#[inline]
#[target_feature(enable = "neon")]
fn load(values: &[f32; 4]) -> float32x4_t {
    // SAFETY: 4 floats lie there.
    unsafe { vld1q_f32(values.as_ptr()) }
}

/// Loads 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
fn load_bytes(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes lie there.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Writes 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
fn store_bytes(out: &mut [u8; 16], bytes: uint8x16_t) {
    // SAFETY: 16 bytes lie there.
    unsafe { vst1q_u8(out.as_mut_ptr(), bytes) }
}

/// Returns the low bytes of 16 integers.
#[inline]
#[target_feature(enable = "neon")]
fn bytes_of([a, b, c, d]: [int32x4_t; 4]) -> int8x16_t {
    let low = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
    let high = vcombine_s16(vmovn_s32(c), vmovn_s32(d));
    vcombine_s8(vmovn_s16(low), vmovn_s16(high))
}

/// Returns the digits before fractions of 256 times 3, and the remaining fractions.
#[inline]
#[target_feature(enable = "neon")]
fn next_digits(fractions: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
    let low = vmull_u8(vget_low_u8(fractions), vdup_n_u8(3));
    let high = vmull_high_u8(fractions, vdupq_n_u8(3));
    let digits = vcombine_u8(vshrn_n_u16::<8>(low), vshrn_n_u16::<8>(high));
    (digits, vmulq_u8(fractions, vdupq_n_u8(3)))
}

/// Calls `each` with the codes of up to five lanes of 16 trits: byte m holds the m-th of each.
#[inline]
#[target_feature(enable = "neon")]
fn trits(bytes: &[u8; 16], mut each: impl FnMut(usize, int8x16_t)) {
    let mut fractions = load_bytes(bytes);
    for lane in 0..5 {
        let digits;
        (digits, fractions) = next_digits(fractions);
        each(lane, vsubq_s8(vreinterpretq_s8_u8(digits), vdupq_n_s8(1)));
    }
}

/// Returns the codes of four bytes with four trits each: the first digits, then the second ones, and so on.
#[inline]
#[target_feature(enable = "neon")]
fn last_trits(bytes: [u8; 4]) -> int8x16_t {
    const POWERS: [u8; 16] = [1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27];
    let bytes = vreinterpretq_u8_u32(vdupq_n_u32(u32::from_le_bytes(bytes)));
    let (digits, _) = next_digits(vmulq_u8(bytes, load_bytes(&POWERS)));
    vsubq_s8(vreinterpretq_s8_u8(digits), vdupq_n_s8(1))
}

/// Returns the codes of four lanes of 16: byte m holds the m-th of each, in two bits.
#[inline]
#[target_feature(enable = "neon")]
fn quarters(bytes: &[u8; 16]) -> [int8x16_t; 4] {
    let bytes = load_bytes(bytes);
    let shifted = [
        bytes,
        vshrq_n_u8::<2>(bytes),
        vshrq_n_u8::<4>(bytes),
        vshrq_n_u8::<6>(bytes),
    ];
    shifted.map(|bytes| {
        let codes = vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(3)));
        vsubq_s8(codes, vdupq_n_s8(1))
    })
}

/// Returns the codes of two lanes of 16: byte m holds the m-th of each, in four bits.
#[inline]
#[target_feature(enable = "neon")]
fn nibbles(bytes: &[u8; 16]) -> [int8x16_t; 2] {
    let bytes = load_bytes(bytes);
    [vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes)]
        .map(|nibbles| vsubq_s8(vreinterpretq_s8_u8(nibbles), vdupq_n_s8(8)))
}

/// Returns the codes of four lanes, in order.
#[inline]
#[target_feature(enable = "neon")]
fn interleaved([a, b, c, d]: [int8x16_t; 4]) -> [i8; 64] {
    let mut codes = [0; 64];
    // SAFETY: 64 bytes lie there.
    unsafe { vst4q_s8(codes.as_mut_ptr(), int8x16x4_t(a, b, c, d)) };
    codes
}

/// Returns a scale in its stored form; `None` if it is not finite.
fn narrow(scale: f32) -> Option<[u8; 2]> {
    let scale = f16::from_f32(scale);
    scale.is_finite().then_some(scale.to_le_bytes())
}

/// Returns a stored scale; `None` if it is not finite.
fn widen(scale: [u8; 2]) -> Option<f32> {
    let scale = f16::from_le_bytes(scale);
    scale.is_finite().then_some(Element::to_f32(scale))
}
