//! GGUF block formats.

mod dot;
mod encode;
mod lanes;
mod pack;
pub(in crate::simd) mod parts;

use std::arch::x86_64::*;

use half::f16;
use tercet_core::block::Format;

use crate::simd::avx2::vectors::Avx2;
use crate::simd::blocks::decode::decoders;
use crate::simd::blocks::{Blocks, Encode, by_loops, values};

/// The kernels of blocks.
pub(in crate::simd) const KERNELS: Blocks = Blocks {
    values: values::kernels!(Avx2, "avx2,bmi1,f16c,fma,popcnt"),
    tq1_0: pack::tq1_0,
    tq2_0: pack::tq2_0,
    q2_0: pack::q2_0,
    encode,
    decode,
    dot: dot::of,
    stream: Some(stream),
};

by_loops!(crate::simd::avx2::vectors::Avx2, "avx2,f16c,fma": decode, dot, encode, vector);
decoders!(Avx2, "avx2,f16c,fma");

/// Returns the encoder of a format that is not ternary.
fn encode(format: Format) -> Option<Encode> {
    match format {
        Format::Q8_0 => Some(encode::q8_0),
        Format::Q4_0 => Some(encode::q4_0),
        other => loops::encode(other),
    }
}

/// Loads 8 floats.
#[inline]
#[target_feature(enable = "avx2")]
fn load(values: &[f32; 8]) -> __m256 {
    // SAFETY: 8 floats lie there.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

/// Writes 8 floats.
#[inline]
#[target_feature(enable = "avx2")]
fn store(out: &mut [f32; 8], values: __m256) {
    // SAFETY: 8 floats lie there.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), values) }
}

/// Loads 8 bytes into the lower half.
#[inline]
#[target_feature(enable = "avx2")]
fn load_bytes(bytes: &[u8; 8]) -> __m128i {
    // SAFETY: 8 bytes lie there.
    unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) }
}

/// Writes 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn store_bytes(out: &mut [u8; 32], bytes: __m256i) {
    // SAFETY: 32 bytes lie there.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn absolute(x: __m256) -> __m256 {
    _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(i32::MAX)))
}

/// Returns the bytes of four vectors of integers 0..=255 or −128..=127, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of([a, b, c, d]: [__m256i; 4]) -> __m256i {
    // Packing to words does not saturate here, but packing to unsigned bytes does, so only the low bytes are kept
    // before.
    let low = _mm256_set1_epi32(0xFF);
    let [a, b, c, d] = [
        _mm256_and_si256(a, low),
        _mm256_and_si256(b, low),
        _mm256_and_si256(c, low),
        _mm256_and_si256(d, low),
    ];
    let bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    // Each half has four bytes of a, b, c and d.
    _mm256_permutevar8x32_epi32(bytes, _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0))
}

/// Returns a scale in its stored form; `None` if it is not finite.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(in crate::simd) fn narrow(scale: f32) -> Option<[u8; 2]> {
    let scale = to_f16(scale);
    scale.is_finite().then_some(scale.to_le_bytes())
}

/// Returns the nearest f16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(in crate::simd) fn to_f16(x: f32) -> f16 {
    let half = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(x));
    f16::from_bits(_mm_cvtsi128_si32(half) as u16)
}

/// Returns the f32 of an f16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(in crate::simd) fn to_f32(x: f16) -> f32 {
    _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x.to_bits().into())))
}

/// Copies floats to a boundary of 32 bytes, bypassing the caches; a fence must follow. The lengths are equal, in whole
/// vectors.
#[target_feature(enable = "avx2")]
fn stream(from: &[f32], to: &mut [f32]) {
    let (to, rest) = to.as_chunks_mut::<8>();
    assert!(to.as_ptr().addr().is_multiple_of(32) && rest.is_empty());
    for (from, to) in from.as_chunks().0.iter().zip(to) {
        // SAFETY: 8 floats lie there, on a boundary.
        unsafe { _mm256_stream_ps(to.as_mut_ptr(), load(from)) };
    }
}
