//! Dot products of unpacked codes.

use std::arch::x86_64::*;

use crate::simd::linear::Line;

/// Σ code · x of each `span` codes, a multiple of 32; modulo 2³².
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn dots(codes: &[u8], x: &[Line], span: usize, out: &mut [i32]) {
    assert!(span.is_multiple_of(32) && codes.len() <= 64 * x.len());
    let mut x = x.as_ptr().cast::<i8>();
    for (codes, out) in codes.chunks_exact(span).zip(out) {
        let mut sum = _mm512_setzero_si512();
        let (wide, rest) = codes.as_chunks::<64>();
        for codes in wide {
            // SAFETY: there is an activation for each code.
            unsafe {
                let codes = _mm512_loadu_si512(codes.as_ptr().cast());
                sum = _mm512_dpbusd_epi32(sum, codes, _mm512_loadu_si512(x.cast()));
                x = x.add(64);
            }
        }
        if !rest.is_empty() {
            // SAFETY: 32 codes are left, and as many activations.
            unsafe {
                let codes = _mm512_maskz_loadu_epi8(0xFFFF_FFFF, rest.as_ptr().cast());
                let line = _mm512_maskz_loadu_epi8(0xFFFF_FFFF, x.cast());
                sum = _mm512_dpbusd_epi32(sum, codes, line);
                x = x.add(32);
            }
        }
        *out = _mm512_reduce_add_epi32(sum);
    }
}
