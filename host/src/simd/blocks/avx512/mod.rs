//! GGUF's block formats.

mod decode;
mod encode;
mod pack;
mod values;

use std::arch::x86_64::*;

use crate::simd::avx2;
use tercet_core::block::Format;

use crate::simd::blocks::{Blocks, Encode, Values, by_loops};

/// The kernels of blocks.
pub(in crate::simd) const KERNELS: Blocks = Blocks {
    values: Values {
        largest: values::largest,
        sum: values::sum,
        coded: values::coded,
        tails: values::tails,
        between: values::between,
    },
    tq1_0: pack::tq1_0,
    tq2_0: pack::tq2_0,
    q2_0: pack::q2_0,
    encode,
    decode: decode::of,
    ..avx2::blocks::KERNELS
};

by_loops!(crate::simd::avx512::vectors::Avx512, "avx512f,avx512bw,avx512dq,avx512vl,f16c": decode, encode);

/// The encoder of a format that is not ternary.
fn encode(format: Format) -> Option<Encode> {
    match format {
        Format::Q8_0 => Some(encode::q8_0),
        Format::Q4_0 => Some(encode::q4_0),
        other => loops::encode(other),
    }
}

/// 16 floats.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[f32; 16]) -> __m512 {
    // SAFETY: 16 floats lie there.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

/// Writes 16 floats.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(out: &mut [f32; 16], values: __m512) {
    // SAFETY: 16 floats lie there.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), values) }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes lie there.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Writes 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_bytes(out: &mut [u8; 16], bytes: __m128i) {
    // SAFETY: 16 bytes lie there.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) }
}

/// A scale as it is stored, and whether it is finite: infinity and NaN have all bits of the exponent.
#[inline]
#[target_feature(enable = "avx512f,f16c")]
fn narrow(scale: f32) -> Option<[u8; 2]> {
    let bits = _mm_cvtsi128_si32(_mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(scale)));
    (bits & 0x7C00 != 0x7C00).then_some((bits as u16).to_le_bytes())
}

/// A stored scale; `None` where it is not finite.
#[inline]
#[target_feature(enable = "avx512f,f16c")]
fn widen(scale: [u8; 2]) -> Option<f32> {
    let bits = u16::from_le_bytes(scale);
    let scale = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits.into())));
    (bits & 0x7C00 != 0x7C00).then_some(scale)
}
