//! Codes of an int8 or int4 grid, 32 values at a time.

use std::arch::x86_64::*;

use tercet_core::quant::{Applied, Grid, QuantError};
use tercet_core::scalar;

use crate::simd::stores::{Ahead, Stores};

/// As [`scalar::affine`].
#[target_feature(enable = "avx2,popcnt")]
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
    let mut applied = Applied::default();
    stores.lines(values, codes, |values, codes, streaming| {
        let (values, codes) = (values.as_flattened(), codes.as_flattened_mut());
        let (values, codes) = (values.as_chunks().0, codes.as_chunks_mut().0);
        applied.merge(&match streaming {
            false => pass::<false>(values, &grid, codes, ahead),
            true => pass::<true>(values, &grid, codes, ahead),
        });
    });
    Ok(applied)
}

/// Whole steps of a grid whose scale is not 0; where `STREAM`, codes on a boundary of 32 bytes, and a fence to follow.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn pass<const STREAM: bool>(
    values: &[[f32; 32]],
    grid: &Grid,
    codes: &mut [[i8; 32]],
    ahead: Ahead,
) -> Applied {
    let zero = i16::from(grid.zero_point);
    let (low, high) = (i16::from(grid.low), i16::from(grid.high));
    let scale = _mm256_set1_ps(grid.scale);
    // As the reference: one step beyond each end, so that steps and codes before clipping fit 16 bits.
    let below = _mm256_set1_ps(f32::from(low - zero - 1));
    let above = _mm256_set1_ps(f32::from(high - zero + 1));
    let zero_point = _mm256_set1_epi16(zero);
    let (low, high) = (_mm256_set1_epi16(low), _mm256_set1_epi16(high));
    let zero_codes = _mm256_set1_epi8(grid.zero_point);
    // Packing works in halves: dword 4h + j holds the codes of half h of quarter j; in order it is dword 2j + h.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let (mut unmoved, mut unclipped) = (0, 0);
    for (step, codes) in values.iter().zip(codes) {
        let mut quarters = [_mm256_setzero_si256(); 4];
        ahead.ask(step.as_ptr(), 0);
        ahead.ask(step.as_ptr().wrapping_add(16), 1);
        for (at, steps) in quarters.iter_mut().enumerate() {
            // SAFETY: 32 values lie there.
            let x = unsafe { _mm256_loadu_ps(step.as_ptr().add(8 * at)) };
            let x = _mm256_div_ps(x, scale);
            // The second operand is what `max` gives for a NaN, as the reference's comparison does.
            let x = _mm256_min_ps(_mm256_max_ps(x, below), above);
            *steps = _mm256_cvtps_epi32(x);
        }
        let [a, b, c, d] = quarters;
        let [(ab, same_ab), (cd, same_cd)] = [(a, b), (c, d)].map(|(a, b)| {
            let free = _mm256_add_epi16(_mm256_packs_epi32(a, b), zero_point);
            let clamped = _mm256_min_epi16(_mm256_max_epi16(free, low), high);
            (clamped, _mm256_cmpeq_epi16(clamped, free))
        });
        let same = _mm256_movemask_epi8(_mm256_packs_epi16(same_ab, same_cd));
        unclipped += u64::from(same.count_ones());
        let code = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
        let zero = _mm256_movemask_epi8(_mm256_cmpeq_epi8(code, zero_codes));
        unmoved += u64::from(zero.count_ones());
        // SAFETY: 32 codes lie there, on a boundary of 32 bytes where it is asked for.
        unsafe {
            if STREAM {
                _mm256_stream_si256(codes.as_mut_ptr().cast(), code);
            } else {
                _mm256_storeu_si256(codes.as_mut_ptr().cast(), code);
            }
        }
    }
    let count = values.len() as u64 * 32;
    Applied {
        coded: count - unmoved,
        clipped: count - unclipped,
        ..Applied::default()
    }
}
