//! Rows of int8, widened to 16 bits: two products in 32 bits are at most 2·128·127.

use std::arch::x86_64::*;

use super::total;
use crate::simd::linear::Activations;

/// Stores the activations in order.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.set(x);
}

/// Processes row after row, in place.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    assert!(bytes.len() == out.len() * x.len && x.lines.len() == x.len.div_ceil(64));
    for (row, out) in bytes.chunks_exact(x.len).zip(out) {
        // Two chains hide the latency of the product.
        let mut sums = [_mm256_setzero_si256(); 2];
        let (steps, rest) = row.as_chunks::<64>();
        for (weights, line) in steps.iter().zip(&x.lines) {
            add(&mut sums, weights, &line.0);
        }
        if !rest.is_empty() {
            // Activations beyond the end are 0.
            let mut weights = [0; 64];
            weights[..rest.len()].copy_from_slice(rest);
            add(&mut sums, &weights, &x.lines[steps.len()].0);
        }
        *out = total(_mm256_add_epi32(sums[0], sums[1]));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: &mut [__m256i; 2], weights: &[u8; 64], x: &[i8; 64]) {
    for at in 0..4 {
        // SAFETY: sixteen bytes lie at 16·at of either.
        let (weights, x) = unsafe {
            let weights = _mm_loadu_si128(weights.as_ptr().add(16 * at).cast());
            (weights, _mm_loadu_si128(x.as_ptr().add(16 * at).cast()))
        };
        let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(weights), _mm256_cvtepi8_epi16(x));
        sums[at % 2] = _mm256_add_epi32(sums[at % 2], products);
    }
}
