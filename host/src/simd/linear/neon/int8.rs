//! Rows of int8 in place, four at a time, so that activations are loaded once for them.

use std::arch::aarch64::*;

use super::{Products, quarter};
use crate::simd::linear::{Activations, Line};

/// Stores the activations in order.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.set(x);
}

/// # Safety
/// The set must run here.
#[inline(always)]
pub(in crate::simd) unsafe fn rows<P: Products>(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let (whole, rest) = (x.len / 64, x.len % 64);
    for (rows, out) in bytes.chunks(4 * x.len).zip(out.chunks_mut(4)) {
        // If there are fewer, the last row replaces missing ones.
        let last = rows.len() - x.len;
        let row = |row: usize| &rows[(row * x.len).min(last)..][..x.len];
        let rows = [row(0), row(1), row(2), row(3)];
        // SAFETY: the set runs here.
        unsafe {
            let mut sums = [vdupq_n_s32(0); 4];
            for (at, line) in x.lines[..whole].iter().enumerate() {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = add::<P>(*sum, &row[64 * at..], line);
                }
            }
            if rest > 0 {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    // Activations beyond the end are 0.
                    let mut weights = [0; 64];
                    weights[..rest].copy_from_slice(&row[64 * whole..]);
                    *sum = add::<P>(*sum, &weights, &x.lines[whole]);
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = vaddvq_s32(sum);
            }
        }
    }
}

/// Adds the products of 64 weights.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn add<P: Products>(sum: int32x4_t, weights: &[u8], line: &Line) -> int32x4_t {
    let weights = &weights[..64];
    let mut sum = sum;
    for number in 0..4 {
        // SAFETY: the set runs here; sixteen bytes lie there.
        unsafe {
            let weights = vld1q_s8(weights.as_ptr().add(16 * number).cast());
            sum = P::add(sum, weights, quarter(line, number));
        }
    }
    sum
}
