//! Ternary codes and their scale, 16 values at a time.
//!
//! A code plus 1 is the number of bounds in (−least, least) that the value is not below. So each place in a byte adds
//! its weight up to twice.

use std::arch::x86_64::*;

use super::{load, narrow, store_bytes};
use crate::simd::blocks::Cut;

/// A [`Cut`] in registers.
#[derive(Clone, Copy)]
struct Test {
    factor: __m512,
    least: __m512,
    most: __m512,
}

impl Test {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(cut: Cut) -> Self {
        Self {
            factor: _mm512_set1_ps(cut.factor),
            least: _mm512_set1_ps(cut.least),
            most: _mm512_set1_ps(-cut.least),
        }
    }

    /// Returns masks for code 1, and for codes other than −1. A bound that is NaN makes all codes 0.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn masks(self, values: &[f32; 16]) -> [__mmask16; 2] {
        let x = _mm512_mul_ps(load(values), self.factor);
        [
            _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, self.least),
            _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(x, self.most),
        ]
    }

    /// Adds `weight` · (code + 1).
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(self, sum: __m512i, values: &[f32; 16], weight: __m512i) -> __m512i {
        let [one, not_minus] = self.masks(values);
        let sum = _mm512_mask_add_epi32(sum, one, sum, weight);
        _mm512_mask_add_epi32(sum, not_minus, sum, weight)
    }
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
pub(in crate::simd) fn tq2_0(
    values: &[f32; 256],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 66],
) -> bool {
    let test = Test::new(cut);
    let (packed, tail) = block.as_chunks_mut::<16>();
    for (half, packed) in values
        .as_chunks::<128>()
        .0
        .iter()
        .zip(packed.as_chunks_mut::<2>().0)
    {
        let values = half.as_chunks::<16>().0;
        for (part, packed) in packed.iter_mut().enumerate() {
            let mut sum = _mm512_setzero_si512();
            for lane in 0..4 {
                let weight = _mm512_set1_epi32(1 << (2 * lane));
                sum = test.add(sum, &values[2 * lane + part], weight);
            }
            store_bytes(packed, _mm512_cvtepi32_epi8(sum));
        }
    }
    put(scale, tail)
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,f16c")]
pub(in crate::simd) fn tq1_0(
    values: &[f32; 256],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 54],
) -> bool {
    const POWERS: [i32; 5] = [81, 27, 9, 3, 1];
    let test = Test::new(cut);
    let values = values.as_chunks::<16>().0;
    let (packed, tail) = block.as_chunks_mut::<16>();
    // Bytes from 16·j on: the first of their five vectors of values, and the distance between those.
    for (packed, (first, step)) in packed.iter_mut().zip([(0, 2), (1, 2), (10, 1)]) {
        let mut sum = _mm512_setzero_si512();
        for (lane, power) in POWERS.into_iter().enumerate() {
            sum = test.add(sum, &values[first + step * lane], _mm512_set1_epi32(power));
        }
        store_bytes(packed, _mm512_cvtepi32_epi8(fractions(sum)));
    }
    // The last 16 values are four digits each of four bytes.
    let powers = _mm512_set_epi32(3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27, 81, 81, 81, 81);
    let sum = test.add(_mm512_setzero_si512(), &values[15], powers);
    let sum = _mm256_add_epi32(
        _mm512_castsi512_si256(sum),
        _mm512_extracti32x8_epi32::<1>(sum),
    );
    let sum = _mm_add_epi32(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let last = _mm512_cvtepi32_epi8(fractions(_mm512_castsi128_si512(sum)));
    let (packed, tail) = tail.split_at_mut(4);
    packed.copy_from_slice(&_mm_cvtsi128_si32(last).to_le_bytes());
    put(scale, tail)
}

/// Returns ⌈256·v / 243⌉ = v + ⌈13·v / 243⌉ for v < 243. The division by 243 is by 2²⁰ / 4,316, too large by at most
/// 212/2²⁰ of the numerator; that is at most 13·242 + 242 = 3,388, and 3,388 · 212 < 2²⁰ keeps the quotient's whole
/// part.
#[inline]
#[target_feature(enable = "avx512f")]
fn fractions(v: __m512i) -> __m512i {
    let numerator = _mm512_add_epi32(
        _mm512_mullo_epi32(v, _mm512_set1_epi32(13 * 4316)),
        _mm512_set1_epi32(242 * 4316),
    );
    _mm512_add_epi32(v, _mm512_srli_epi32::<20>(numerator))
}

/// Packs as defined in core's docs of the format; false if the scale overflows.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi2,f16c")]
pub(in crate::simd) fn q2_0(
    values: &[f32; 64],
    cut: Cut,
    scale: f32,
    block: &mut [u8; 18],
) -> bool {
    let test = Test::new(cut);
    let (head, packed) = block.split_at_mut(2);
    for (values, packed) in values
        .as_chunks::<32>()
        .0
        .iter()
        .zip(packed.as_chunks_mut().0)
    {
        let [a, b] = [0, 16].map(|at| test.masks(values[at..].first_chunk().unwrap_or(&[0.0; 16])));
        let [one, not_minus] = [0, 1].map(|i| u64::from(a[i]) | u64::from(b[i]) << 16);
        // A code plus 1 is 2 if the value is coded 1, and 1 if it is neither: in two bits, the upper and the lower.
        let upper = _pdep_u64(one, 0xAAAA_AAAA_AAAA_AAAA);
        let lower = _pdep_u64(not_minus & !one, 0x5555_5555_5555_5555);
        *packed = (upper | lower).to_le_bytes();
    }
    put(scale, head)
}

/// Writes a scale to two bytes; false if it overflows.
#[inline]
#[target_feature(enable = "avx512f,f16c")]
fn put(scale: f32, out: &mut [u8]) -> bool {
    match narrow(scale) {
        Some(bytes) => {
            out.copy_from_slice(&bytes);
            true
        }
        None => false,
    }
}
