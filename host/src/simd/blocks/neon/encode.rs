//! Q8_0 and Q4_0, block by block.

use std::arch::aarch64::*;

use super::{bytes_of, load, narrow, store_bytes};
use crate::simd::blocks::values;
use crate::simd::neon::vectors::Neon;

/// 2⁻¹⁰⁰: from here on a scale and its reciprocal are normal.
const TINY: u32 = 27 << 23;

/// Encodes blocks up to the first that is not ordinary, and returns their number.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn q8_0(values: &[f32], out: &mut [u8]) -> usize {
    blocks::<34>(values, out, |values, largest, packed| {
        let scale = largest / 127.0;
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        for (values, packed) in values.as_chunks().0.iter().zip(packed.as_chunks_mut().0) {
            // Rounds half away from zero.
            let codes = products(values, inverse).map(|p| vcvtaq_s32_f32(p));
            store_bytes(packed, vreinterpretq_u8_s8(bytes_of(codes)));
        }
        scale
    })
}

/// Encodes blocks up to the first that is not ordinary, and returns their number.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn q4_0(values: &[f32], out: &mut [u8]) -> usize {
    blocks::<18>(values, out, |values, largest, packed| {
        let first = values.iter().find(|x| x.abs() == largest);
        let is_negative = first.is_some_and(|&x| x < 0.0);
        let scale = if is_negative {
            largest / 8.0
        } else {
            largest / -8.0
        };
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        let mut halves = [vdupq_n_u8(0); 2];
        for (half, values) in halves.iter_mut().zip(values.as_chunks().0) {
            let nibbles = products(values, inverse).map(|p| {
                let nibble = vcvtq_s32_f32(vaddq_f32(p, vdupq_n_f32(8.5)));
                vminq_s32(nibble, vdupq_n_s32(15))
            });
            *half = vreinterpretq_u8_s8(bytes_of(nibbles));
        }
        if let Some(packed) = packed.first_chunk_mut() {
            store_bytes(packed, vorrq_u8(halves[0], vshlq_n_u8::<4>(halves[1])));
        }
        scale
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn products(values: &[f32; 16], inverse: f32) -> [float32x4_t; 4] {
    let mut products = [vdupq_n_f32(0.0); 4];
    for (product, x) in products.iter_mut().zip(values.as_chunks().0) {
        *product = vmulq_n_f32(load(x), inverse);
    }
    products
}

/// Calls `put` with each block's values, its largest magnitude and the place of its codes; `put` returns the scale.
#[inline]
#[target_feature(enable = "neon")]
fn blocks<const BYTES: usize>(
    values: &[f32],
    out: &mut [u8],
    put: impl Fn(&[f32; 32], f32, &mut [u8]) -> f32,
) -> usize {
    let (values, out) = (values.as_chunks::<32>().0, out.as_chunks_mut::<BYTES>().0);
    for (index, (values, out)) in values.iter().zip(out).enumerate() {
        let largest = values::largest(Neon::here(), values);
        if largest >= 0x7F80_0000 || (1..TINY).contains(&largest) {
            return index;
        }
        let (head, packed) = out.split_at_mut(2);
        match narrow(put(values, f32::from_bits(largest), packed)) {
            Some(scale) => head.copy_from_slice(&scale),
            None => return index,
        }
    }
    values.len()
}
