//! Converts halves to f32.

use std::arch::x86_64::*;

use tercet_core::number::Element;
use tercet_core::{bf16, f16};

/// Widens f16 values to a slice of equal length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn f16(values: &[f16], out: &mut [f32]) {
    let (steps, rest) = values.as_chunks::<16>();
    let (outs, rest_out) = out.as_chunks_mut::<16>();
    for (values, out) in steps.iter().zip(outs) {
        // SAFETY: 16 halves lie there, and 16 floats have room.
        unsafe {
            let halves = _mm256_loadu_si256(values.as_ptr().cast());
            _mm512_storeu_ps(out.as_mut_ptr(), _mm512_cvtph_ps(halves));
        }
    }
    for (value, out) in rest.iter().zip(rest_out) {
        *out = value.to_f32();
    }
}

/// Widens bf16 values to a slice of equal length: a loop that the compiler vectorizes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn bf16(values: &[bf16], out: &mut [f32]) {
    for (value, out) in values.iter().zip(out) {
        *out = Element::to_f32(*value);
    }
}
