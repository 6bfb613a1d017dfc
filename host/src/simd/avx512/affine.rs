//! Codes of an int8 or int4 grid, 16 values at a time.

use std::arch::x86_64::*;

use tercet_core::quant::{Applied, Grid, QuantError};
use tercet_core::scalar;

/// As [`scalar::affine`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn affine(
    values: &[f32],
    grid: &Grid,
    codes: &mut [i8],
) -> Result<Applied, QuantError> {
    let checked = grid.checked()?;
    if values.len() != codes.len() || checked.scale == 0.0 {
        return scalar::affine(values, grid, codes);
    }
    let scale = _mm512_set1_ps(checked.scale);
    let zero_point = _mm512_set1_epi32(i32::from(checked.zero_point));
    let (low, high) = (i32::from(checked.low), i32::from(checked.high));
    // As the reference: one step beyond each end.
    let below = _mm512_set1_ps((low - i32::from(checked.zero_point) - 1) as f32);
    let above = _mm512_set1_ps((high - i32::from(checked.zero_point) + 1) as f32);
    let (low, high) = (_mm512_set1_epi32(low), _mm512_set1_epi32(high));
    let mut applied = Applied::default();
    let (steps, rest) = values.as_chunks::<16>();
    let (codes, rest_codes) = codes.as_chunks_mut::<16>();
    for (values, codes) in steps.iter().zip(codes) {
        // SAFETY: 16 values lie there.
        let x = unsafe { _mm512_loadu_ps(values.as_ptr()) };
        let x = _mm512_div_ps(x, scale);
        // The second operand is what `max` gives for a NaN, as the reference's comparison does.
        let x = _mm512_min_ps(_mm512_max_ps(x, below), above);
        let unclipped = _mm512_add_epi32(_mm512_cvtps_epi32(x), zero_point);
        let clamped = _mm512_min_epi32(_mm512_max_epi32(unclipped, low), high);
        applied.coded += u64::from(_mm512_cmpneq_epi32_mask(clamped, zero_point).count_ones());
        applied.clipped += u64::from(_mm512_cmpneq_epi32_mask(clamped, unclipped).count_ones());
        // SAFETY: 16 codes lie there.
        unsafe { _mm_storeu_si128(codes.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(clamped)) };
    }
    applied.merge(&scalar::affine(rest, grid, rest_codes)?);
    Ok(applied)
}
