//! Rows of weights times activations, 32 bytes at a time.
//!
//! `vpmaddubsw` adds two products in 16 bits with saturation: exact for codes of 0 to 15, whose two products are at most
//! 2·15·127 = 3,810, and not used for more. int8 weights are widened to 16 bits for `vpmaddwd`.

use std::arch::x86_64::*;

pub(in crate::simd) mod codes;
pub(in crate::simd) mod int8;
pub(in crate::simd) mod ternary_lanes;
pub(in crate::simd) mod tiles;
pub(in crate::simd) mod tq2_0;

/// The sum of eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn total(lanes: __m256i) -> i32 {
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(lanes),
        _mm256_extracti128_si256::<1>(lanes),
    );
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
    _mm_cvtsi128_si32(one)
}
