//! Codes of an int8 or int4 grid, 64 values at a time.

use std::arch::x86_64::*;

use tercet_core::quant::{Applied, Grid, QuantError};
use tercet_core::scalar;

use crate::simd::stores::{Ahead, Stores};

/// As [`scalar::affine`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(in crate::simd) fn affine(
    values: &[f32],
    grid: &Grid,
    codes: &mut [i8],
    stores: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    let grid = grid.checked()?;
    if values.len() != codes.len() || grid.scale == 0.0 {
        return scalar::affine(values, &grid, codes);
    }
    let multiply = (LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&grid.scale);
    let mut applied = Applied::default();
    stores.lines(values, codes, |values, codes, streaming| {
        applied.merge(&match (streaming, multiply) {
            (false, false) => pass::<false, false>(values, &grid, codes, ahead),
            (false, true) => pass::<false, true>(values, &grid, codes, ahead),
            (true, false) => pass::<true, false>(values, &grid, codes, ahead),
            (true, true) => pass::<true, true>(values, &grid, codes, ahead),
        });
    });
    Ok(applied)
}

/// From 2⁻¹⁰⁰ to 2¹⁰⁰ a scale and its inverse are normal, so the inverse is right to half a place.
const LEAST_SCALE: f32 = f32::from_bits((127 - 100) << 23);

/// Where a product is farther than 2⁻¹⁴ from the middle of two integers, it rounds to the integer that the quotient rounds to.
///
/// A division takes as long as six other instructions, or more. With q = x / scale in real numbers, the rounded quotient is
/// within 2⁻²⁴·|q| of q, and the product with the rounded inverse within 2.01 · 2⁻²⁴·|q|. Where |q| is at most 258, they are
/// less than 258 · 3.01 · 2⁻²⁴ < 2⁻¹⁴ apart: both on one side of the middle. Beyond, both are clipped. (Where a product is
/// subnormal it is 0 to within 2⁻¹²⁶, as the quotient is.) Few vectors have a value that near; those are divided.
const NEAR_TIE: f32 = 0.5 - 1.0 / 16_384.0;

/// Whole steps of a grid whose scale is not 0; where `STREAM`, codes on a line's boundary, and a fence to follow.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
fn pass<const STREAM: bool, const MULTIPLY: bool>(
    values: &[[f32; 64]],
    grid: &Grid,
    codes: &mut [[i8; 64]],
    ahead: Ahead,
) -> Applied {
    let zero = i16::from(grid.zero_point);
    let (low, high) = (i16::from(grid.low), i16::from(grid.high));
    let (scale, inverse) = (_mm512_set1_ps(grid.scale), _mm512_set1_ps(1.0 / grid.scale));
    let near_tie = _mm512_set1_epi32(NEAR_TIE.to_bits() as i32);
    let magnitudes = _mm512_set1_epi32(i32::MAX);
    // As the reference: one step beyond the end.
    let above = _mm512_set1_ps(f32::from(high - zero + 1));
    let zero_point = _mm512_set1_epi16(zero);
    let (low, high) = (_mm512_set1_epi16(low), _mm512_set1_epi16(high));
    // Dword 4i + j holds codes of quarter j; in order it is dword 4j + i.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let zero_codes = _mm512_set1_epi8(grid.zero_point);
    let (mut coded, mut clipped) = (0, 0);
    for (step, codes) in values.iter().zip(codes) {
        // Converted, what lies below all integers, and a NaN, which the minimum lets pass, is the lowest one, and so it stays
        // when it is packed and clipped: the code of the reference, which clips both to `below`.
        let convert = |x| _mm512_cvtps_epi32(_mm512_min_ps(above, x));
        let mut steps = [_mm512_setzero_si512(); 4];
        let mut farthest = _mm512_setzero_si512();
        for (at, steps) in steps.iter_mut().enumerate() {
            ahead.ask(step.as_ptr().wrapping_add(16 * at), at / 2);
            // SAFETY: 64 values lie there.
            let x = unsafe { _mm512_loadu_ps(step.as_ptr().add(16 * at)) };
            if MULTIPLY {
                let x = _mm512_mul_ps(x, inverse);
                *steps = convert(x);
                // What rounding takes away; magnitudes order as their patterns.
                let off = _mm512_castps_si512(_mm512_reduce_ps::<0>(x));
                farthest = _mm512_max_epi32(farthest, _mm512_and_si512(off, magnitudes));
            } else {
                *steps = convert(_mm512_div_ps(x, scale));
            }
        }
        if MULTIPLY && _mm512_cmpgt_epi32_mask(farthest, near_tie) != 0 {
            for (at, steps) in steps.iter_mut().enumerate() {
                // SAFETY: 64 values lie there.
                let x = unsafe { _mm512_loadu_ps(step.as_ptr().add(16 * at)) };
                *steps = convert(_mm512_div_ps(x, scale));
            }
        }
        let [a, b, c, d] = steps;
        let halves = [(a, b), (c, d)].map(|(a, b)| {
            let unclipped = _mm512_adds_epi16(_mm512_packs_epi32(a, b), zero_point);
            let clamped = _mm512_min_epi16(_mm512_max_epi16(unclipped, low), high);
            (
                clamped,
                _mm512_cmpneq_epi16_mask(clamped, unclipped).count_ones(),
            )
        });
        let [(ab, clipped_ab), (cd, clipped_cd)] = halves;
        clipped += u64::from(clipped_ab + clipped_cd);
        let code = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(ab, cd));
        coded += u64::from(_mm512_cmpneq_epi8_mask(code, zero_codes).count_ones());
        // SAFETY: 64 codes lie there, on a boundary of 64 bytes where it is asked for.
        unsafe {
            if STREAM {
                _mm512_stream_si512(codes.as_mut_ptr().cast(), code);
            } else {
                _mm512_storeu_si512(codes.as_mut_ptr().cast(), code);
            }
        }
    }
    Applied {
        coded,
        clipped,
        ..Applied::default()
    }
}
