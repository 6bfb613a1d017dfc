//! Codes of an int8 or int4 grid, 16 values at a time.

use std::arch::aarch64::*;

use tercet_core::quant::{Applied, Grid, QuantError};
use tercet_core::scalar;

use crate::simd::stores::{Ahead, Stores};

/// As [`scalar::affine`]; it writes into the caches.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn affine(
    values: &[f32],
    grid: &Grid,
    codes: &mut [i8],
    _: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    let grid = grid.checked()?;
    if values.len() != codes.len() || grid.scale == 0.0 {
        return scalar::affine(values, &grid, codes);
    }
    let mut applied = Applied::default();
    Stores::Cached.lines(values, codes, |values, codes, _| {
        let (values, codes) = (values.as_flattened(), codes.as_flattened_mut());
        let (values, codes) = (values.as_chunks().0, codes.as_chunks_mut().0);
        applied.merge(&pass(values, &grid, codes, ahead));
    });
    Ok(applied)
}

/// Whole steps of a grid whose scale is not 0.
#[inline]
#[target_feature(enable = "neon")]
fn pass(values: &[[f32; 16]], grid: &Grid, codes: &mut [[i8; 16]], ahead: Ahead) -> Applied {
    let zero = i16::from(grid.zero_point);
    let (low, high) = (i16::from(grid.low), i16::from(grid.high));
    let scale = vdupq_n_f32(grid.scale);
    // As the reference: one step beyond each end, so that steps and codes before clipping fit 16 bits.
    let below = vdupq_n_f32(f32::from(low - zero - 1));
    let above = vdupq_n_f32(f32::from(high - zero + 1));
    let zero_point = vdupq_n_s16(zero);
    let (low, high) = (vdupq_n_s16(low), vdupq_n_s16(high));
    let zero_codes = vdupq_n_s8(grid.zero_point);
    let ones = vdupq_n_u8(1);
    let (mut unmoved, mut unclipped) = (0, 0);
    for (number, (step, codes)) in values.iter().zip(codes).enumerate() {
        ahead.ask(step.as_ptr(), number % 2);
        let mut quarters = [vdup_n_s16(0); 4];
        for (at, steps) in quarters.iter_mut().enumerate() {
            // SAFETY: 16 values lie there.
            let x = unsafe { vld1q_f32(step.as_ptr().add(4 * at)) };
            let x = vdivq_f32(x, scale);
            // This maximum gives the number where the other is a quotient that is none, as the reference's comparison does.
            let x = vminnmq_f32(vmaxnmq_f32(x, below), above);
            *steps = vmovn_s32(vcvtnq_s32_f32(x));
        }
        let [a, b, c, d] = quarters;
        let [(low_half, same_low), (high_half, same_high)] = [(a, b), (c, d)].map(|(a, b)| {
            let free = vaddq_s16(vcombine_s16(a, b), zero_point);
            let clamped = vminq_s16(vmaxq_s16(free, low), high);
            (vmovn_s16(clamped), vmovn_u16(vceqq_s16(clamped, free)))
        });
        let code = vcombine_s8(low_half, high_half);
        // At most 16 ones each.
        let same = vandq_u8(vcombine_u8(same_low, same_high), ones);
        unclipped += u64::from(vaddvq_u8(same));
        unmoved += u64::from(vaddvq_u8(vandq_u8(vceqq_s8(code, zero_codes), ones)));
        // SAFETY: 16 codes have room there.
        unsafe { vst1q_s8(codes.as_mut_ptr(), code) };
    }
    let count = values.len() as u64 * 16;
    Applied {
        coded: count - unmoved,
        clipped: count - unclipped,
        ..Applied::default()
    }
}
