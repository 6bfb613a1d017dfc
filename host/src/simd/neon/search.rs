//! Dot products of one int8 query with a block of rows, 16 values at a time in four rows.
//!
//! A product of two bytes fits 16 bits; `SADALP` adds pairs of them to 32 bits, so nothing saturates.

use std::arch::aarch64::*;

use crate::simd::search::{Dots, Norms};

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let mut fours = rows.chunks_exact(4 * dim);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (4 * dim) * 4);
    for (rows, dots) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        let [a, b, c, d] = sums::<4>(query, rows);
        let sums = vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
        // SAFETY: four sums lie there.
        unsafe { vst1q_s32(dots.as_mut_ptr(), sums) };
    }
    for (row, dot) in fours.remainder().chunks_exact(dim).zip(rest_out) {
        let [sum] = sums::<1>(query, row);
        *dot = vaddvq_s32(sum);
    }
}

/// [`dots`], and [`tercet_core::scalar::norm`] for each row.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn dots_and_norms(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let rows = rows.chunks_exact(query.len());
    for ((row, dot), norm) in rows.zip(dots).zip(norms) {
        let ([products], [squares]) = (sums::<1>(query, row), sums::<1>(row, row));
        *dot = vaddvq_s32(products);
        *norm = vaddvq_s32(squares) as u32;
    }
}

/// Lanes of Σ row · query of N rows.
#[inline]
#[target_feature(enable = "neon")]
fn sums<const N: usize>(query: &[i8], rows: &[i8]) -> [int32x4_t; N] {
    let dim = query.len();
    let mut sums = [vdupq_n_s32(0); N];
    for at in (0..dim).step_by(16) {
        let q = load(&query[at..]);
        for (row, sum) in sums.iter_mut().enumerate() {
            let x = load(&rows[row * dim + at..(row + 1) * dim]);
            let low = vmull_s8(vget_low_s8(q), vget_low_s8(x));
            *sum = vpadalq_s16(vpadalq_s16(*sum, low), vmull_high_s8(q, x));
        }
    }
    sums
}

/// Up to 16 values of a slice, and zeros.
#[inline]
#[target_feature(enable = "neon")]
pub(in crate::simd) fn load(values: &[i8]) -> int8x16_t {
    if let Some(whole) = values.first_chunk::<16>() {
        // SAFETY: 16 values lie there.
        return unsafe { vld1q_s8(whole.as_ptr()) };
    }
    let mut padded = [0; 16];
    padded[..values.len()].copy_from_slice(values);
    // SAFETY: 16 values lie there.
    unsafe { vld1q_s8(padded.as_ptr()) }
}
