//! Dot products of unpacked codes, widened to 16 bits.

use std::arch::x86_64::*;

use super::total;
use crate::simd::linear::Line;

/// Σ code · x of each `span` codes, a multiple of 32; modulo 2³².
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn dots(codes: &[u8], x: &[Line], span: usize, out: &mut [i32]) {
    assert!(span.is_multiple_of(32) && codes.len() <= 64 * x.len());
    let mut x = x.as_ptr().cast::<i8>();
    for (codes, out) in codes.chunks_exact(span).zip(out) {
        let mut sums = [_mm256_setzero_si256(); 2];
        for codes in codes.as_chunks::<32>().0 {
            for (half, sum) in sums.iter_mut().enumerate() {
                // SAFETY: there is an activation for each code.
                let (codes, x) = unsafe {
                    let codes = _mm_loadu_si128(codes.as_ptr().add(16 * half).cast());
                    (codes, _mm_loadu_si128(x.add(16 * half).cast()))
                };
                // Two products are at most 2·255·127.
                let products =
                    _mm256_madd_epi16(_mm256_cvtepu8_epi16(codes), _mm256_cvtepi8_epi16(x));
                *sum = _mm256_add_epi32(*sum, products);
            }
            // SAFETY: as before; at most one past the last.
            x = unsafe { x.add(32) };
        }
        *out = total(_mm256_add_epi32(sums[0], sums[1]));
    }
}
