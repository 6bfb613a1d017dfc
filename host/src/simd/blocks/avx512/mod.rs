//! GGUF block formats.

mod encode;
mod lanes;
mod pack;

use std::arch::x86_64::*;

use tercet_core::block::Format;

use crate::simd::avx2;
use crate::simd::avx2::blocks::{narrow, to_f16, to_f32};
use crate::simd::avx512::vectors::Avx512;
use crate::simd::blocks::decode::decoders;
use crate::simd::blocks::{Blocks, Decode, Encode, by_loops, values};

/// The kernels of blocks.
pub(in crate::simd) const KERNELS: Blocks = Blocks {
    values: values::kernels!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl,f16c,popcnt"),
    tq1_0: pack::tq1_0,
    tq2_0: pack::tq2_0,
    q2_0: pack::q2_0,
    encode,
    decode: decoder,
    ..avx2::blocks::KERNELS
};

by_loops!(crate::simd::avx512::vectors::Avx512, "avx512f,avx512bw,avx512dq,avx512vl,f16c": decode, encode);
decoders!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl,f16c");

/// Returns the decoder of a format. Blocks with parts have AVX2's: compiled for this set, its loops write floats of
/// several parts at once, by scatters, and take eight times as long.
fn decoder(format: Format) -> Option<Decode> {
    match format.parts() {
        1 => decode(format),
        _ => (avx2::blocks::KERNELS.decode)(format),
    }
}

/// Returns the encoder of a format that is not ternary.
fn encode(format: Format) -> Option<Encode> {
    match format {
        Format::Q8_0 => Some(encode::q8_0),
        Format::Q4_0 => Some(encode::q4_0),
        other => loops::encode(other),
    }
}

/// Loads 16 floats.
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

/// Writes 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_bytes(out: &mut [u8; 16], bytes: __m128i) {
    // SAFETY: 16 bytes lie there.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) }
}
