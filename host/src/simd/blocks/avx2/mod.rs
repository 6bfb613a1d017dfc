//! GGUF's block formats.

mod decode;
mod dot;
mod encode;
mod pack;
mod values;

use std::arch::x86_64::*;

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
    dot: dot::of,
    stream: Some(decode::stream),
};

by_loops!(crate::simd::avx2::vectors::Avx2, "avx2,f16c,fma": decode, dot, encode, vector);

/// The encoder of a format that is not ternary.
fn encode(format: Format) -> Option<Encode> {
    match format {
        Format::Q8_0 => Some(encode::q8_0),
        Format::Q4_0 => Some(encode::q4_0),
        other => loops::encode(other),
    }
}

/// 8 floats.
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

/// 8 bytes, in the lower half.
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

/// The bytes of four vectors of integers 0..=255 or −128..=127, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of([a, b, c, d]: [__m256i; 4]) -> __m256i {
    // Words do not saturate; bytes do as unsigned ones, so only the low bytes are kept before.
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

/// A scale as it is stored; `None` where it is not finite: infinity and NaN have all bits of the exponent.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn narrow(scale: f32) -> Option<[u8; 2]> {
    let bits = _mm_cvtsi128_si32(_mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm_set_ss(scale)));
    (bits & 0x7C00 != 0x7C00).then_some((bits as u16).to_le_bytes())
}

/// A stored scale; `None` where it is not finite.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen(scale: [u8; 2]) -> Option<f32> {
    let bits = u16::from_le_bytes(scale);
    let scale = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits.into())));
    (bits & 0x7C00 != 0x7C00).then_some(scale)
}
