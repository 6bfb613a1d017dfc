//! Codes of an int8 or int4 grid, 64 values at a time.

use std::arch::x86_64::*;

use tercet_core::quant::{Applied, Grid, QuantError};
use tercet_core::scalar;

use crate::simd::stores::{Stores, prefetch};

/// As [`scalar::affine`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(in crate::simd) fn affine(
    values: &[f32],
    grid: &Grid,
    codes: &mut [i8],
    stores: Stores,
) -> Result<Applied, QuantError> {
    let grid = grid.checked()?;
    if values.len() != codes.len() || grid.scale == 0.0 {
        return scalar::affine(values, &grid, codes);
    }
    let mut applied = Applied::default();
    stores.lines(values, codes, |values, codes, streaming| {
        applied.merge(&match streaming {
            false => pass::<false>(values, &grid, codes),
            true => pass::<true>(values, &grid, codes),
        });
    });
    Ok(applied)
}

/// Whole steps of a grid whose scale is not 0; where `STREAM`, codes on a line's boundary, and a fence to follow.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
fn pass<const STREAM: bool>(values: &[[f32; 64]], grid: &Grid, codes: &mut [[i8; 64]]) -> Applied {
    let zero = i16::from(grid.zero_point);
    let (low, high) = (i16::from(grid.low), i16::from(grid.high));
    let scale = _mm512_set1_ps(grid.scale);
    // As the reference: one step beyond each end, so that steps and codes before clipping fit 16 bits.
    let below = _mm512_set1_ps(f32::from(low - zero - 1));
    let above = _mm512_set1_ps(f32::from(high - zero + 1));
    let zero_point = _mm512_set1_epi16(zero);
    let (low, high) = (_mm512_set1_epi16(low), _mm512_set1_epi16(high));
    // Dword 4i + j holds codes of quarter j; in order it is dword 4j + i.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let zero_codes = _mm512_set1_epi8(grid.zero_point);
    let (mut coded, mut clipped) = (0, 0);
    for (step, codes) in values.iter().zip(codes) {
        let mut steps = [_mm512_setzero_si512(); 4];
        for (at, steps) in steps.iter_mut().enumerate() {
            prefetch(step.as_ptr().wrapping_add(16 * at));
            // SAFETY: 64 values lie there.
            let x = unsafe { _mm512_loadu_ps(step.as_ptr().add(16 * at)) };
            let x = _mm512_div_ps(x, scale);
            // The second operand is what `max` gives for a NaN, as the reference's comparison does.
            let x = _mm512_min_ps(_mm512_max_ps(x, below), above);
            *steps = _mm512_cvtps_epi32(x);
        }
        let [a, b, c, d] = steps;
        let halves = [(a, b), (c, d)].map(|(a, b)| {
            let unclipped = _mm512_add_epi16(_mm512_packs_epi32(a, b), zero_point);
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
