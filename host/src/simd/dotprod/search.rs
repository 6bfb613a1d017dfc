//! Dot products of one int8 query with a block of rows, 16 values at a time in four rows.

use std::arch::aarch64::*;
use std::arch::asm;

use crate::simd::neon::search::load;
use crate::simd::search::{Dots, Norms};

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "neon,dotprod")]
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
#[target_feature(enable = "neon,dotprod")]
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
#[target_feature(enable = "neon,dotprod")]
fn sums<const N: usize>(query: &[i8], rows: &[i8]) -> [int32x4_t; N] {
    let dim = query.len();
    let mut sums = [vdupq_n_s32(0); N];
    for at in (0..dim).step_by(16) {
        let q = load(&query[at..]);
        for (row, sum) in sums.iter_mut().enumerate() {
            let x = load(&rows[row * dim + at..(row + 1) * dim]);
            *sum = sdot(*sum, x, q);
        }
    }
    sums
}

/// Adds the products of four bytes to each word. `vdotq_s32` is not stable.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot(sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let mut sum = sum;
    // SAFETY: it reads and writes registers alone, and the set has the instruction.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}
