//! Ternary codes and their scale, 16 values at a time.
//!
//! A code plus 1 is the number of bounds in (−least, least) that the value is not below. Comparisons give −1 if true,
//! so their sum is subtracted.

use std::arch::aarch64::*;

use super::{bytes_of, load, narrow, store_bytes};
use crate::simd::blocks::Cut;

/// A [`Cut`] in registers.
#[derive(Clone, Copy)]
struct Test {
    factor: float32x4_t,
    least: float32x4_t,
    most: float32x4_t,
}

impl Test {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(cut: Cut) -> Self {
        Self {
            factor: vdupq_n_f32(cut.factor),
            least: vdupq_n_f32(cut.least),
            most: vdupq_n_f32(-cut.least),
        }
    }

    /// Returns −1 − code of 16 values, a byte each. A bound that is NaN makes all codes 0.
    #[inline]
    #[target_feature(enable = "neon")]
    fn negated(self, values: &[f32; 16]) -> uint8x16_t {
        let mut parts = [vdupq_n_s32(0); 4];
        for (part, x) in parts.iter_mut().zip(values.as_chunks().0) {
            let x = vmulq_f32(load(x), self.factor);
            let one = vcgeq_f32(x, self.least);
            let not_minus = vmvnq_u32(vcleq_f32(x, self.most));
            *part = vreinterpretq_s32_u32(vaddq_u32(one, not_minus));
        }
        vreinterpretq_u8_s8(bytes_of(parts))
    }
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn tq2_0(
    values: &[f32; 256],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 66],
) -> bool {
    let test = Test::new(cut);
    let (packed, tail) = block.as_chunks_mut::<16>();
    for (half, packed) in values
        .as_chunks::<128>()
        .0
        .iter()
        .zip(packed.as_chunks_mut::<2>().0)
    {
        let values = half.as_chunks::<16>().0;
        for (part, packed) in packed.iter_mut().enumerate() {
            let mut bytes = vdupq_n_u8(0);
            // The last lane first, so that the ones before move it up.
            for lane in (0..4).rev() {
                let negated = test.negated(&values[2 * lane + part]);
                bytes = vsubq_u8(vshlq_n_u8::<2>(bytes), negated);
            }
            store_bytes(packed, bytes);
        }
    }
    put(scale, tail)
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn tq1_0(
    values: &[f32; 256],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 54],
) -> bool {
    let test = Test::new(cut);
    let values = values.as_chunks::<16>().0;
    let (packed, tail) = block.as_chunks_mut::<16>();
    // Bytes from 16·j on: the first of their five vectors of values, and the distance between those.
    for (packed, (first, step)) in packed.iter_mut().zip([(0, 2), (1, 2), (10, 1)]) {
        let mut bytes = vdupq_n_u8(0);
        for lane in 0..5 {
            let negated = test.negated(&values[first + step * lane]);
            bytes = vsubq_u8(vmulq_u8(bytes, vdupq_n_u8(3)), negated);
        }
        store_bytes(packed, fractions(bytes));
    }
    // The last 16 values are four digits each of four bytes; the four bytes of a digit are one integer, and no byte
    // overflows.
    let mut last = [0; 16];
    store_bytes(
        &mut last,
        vsubq_u8(vdupq_n_u8(0), test.negated(&values[15])),
    );
    let digits = last
        .as_chunks()
        .0
        .iter()
        .map(|&digits| u32::from_le_bytes(digits));
    let last = digits.fold(0, |sum, digits| sum * 3 + digits) * 3;
    let mut bytes = [0; 16];
    store_bytes(
        &mut bytes,
        fractions(vreinterpretq_u8_u32(vdupq_n_u32(last))),
    );
    let (packed, tail) = tail.split_at_mut(4);
    packed.copy_from_slice(&bytes[..4]);
    put(scale, tail)
}

/// Returns ⌈256·v / 243⌉ = v + ⌊n / 243⌋ for v < 243, with n = 13·v + 242 at most 3,388.
///
/// The division is by 2²³ / 34,522: too large by 238/2²³ of n, and n · 238 < 2²³ keeps the quotient's whole part.
#[inline]
#[target_feature(enable = "neon")]
fn fractions(v: uint8x16_t) -> uint8x16_t {
    let quotient = |v| {
        let n = vmlal_u8(vdupq_n_u16(242), v, vdup_n_u8(13));
        let low = vmull_n_u16(vget_low_u16(n), 34_522);
        let high = vmull_high_n_u16(n, 34_522);
        let upper = vcombine_u16(vshrn_n_u32::<16>(low), vshrn_n_u32::<16>(high));
        vmovn_u16(vshrq_n_u16::<{ 23 - 16 }>(upper))
    };
    let quotients = vcombine_u8(quotient(vget_low_u8(v)), quotient(vget_high_u8(v)));
    vaddq_u8(v, quotients)
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn q2_0(
    values: &[f32; 64],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 18],
) -> bool {
    // −1, −4, −16 and −64, modulo 256.
    const WEIGHTS: [u8; 16] = [
        255, 252, 240, 192, 255, 252, 240, 192, 255, 252, 240, 192, 255, 252, 240, 192,
    ];
    let test = Test::new(cut);
    let weights = super::load_bytes(&WEIGHTS);
    let (head, packed) = block.split_at_mut(2);
    let mut parts = [vdupq_n_s32(0); 4];
    for (part, values) in parts.iter_mut().zip(values.as_chunks().0) {
        let places = vmulq_u8(test.negated(values), weights);
        *part = vreinterpretq_s32_u32(vpaddlq_u16(vpaddlq_u8(places)));
    }
    if let Some(packed) = packed.first_chunk_mut() {
        store_bytes(packed, vreinterpretq_u8_s8(bytes_of(parts)));
    }
    put(scale, head)
}

/// Writes a scale to two bytes; false if it overflows.
fn put(scale: f32, out: &mut [u8]) -> bool {
    match narrow(scale) {
        Some(bytes) => {
            out.copy_from_slice(&bytes);
            true
        }
        None => false,
    }
}
