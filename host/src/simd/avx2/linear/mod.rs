//! Rows of weights times activations, 32 bytes at a time.
//!
//! `vpmaddubsw` adds two products in 16 bits with saturation: exact for codes of 0 to 15, whose two products are at most
//! 2·15·127 = 3,810, and for magnitudes of int8, 2·128·127 = 32,512, where activations take the weights' signs. Rows of int8 are
//! widened to 16 bits for `vpmaddwd`.

use std::arch::x86_64::*;

mod blocks;
pub(in crate::simd) mod five_trits;
pub(in crate::simd) mod int4;
pub(in crate::simd) mod int8;
pub(in crate::simd) mod int8_pairs;
pub(in crate::simd) mod q2_0;
pub(in crate::simd) mod q4_0;
pub(in crate::simd) mod q8_0;
mod sums;
pub(in crate::simd) mod ternary_lanes;
pub(in crate::simd) mod tiles;
pub(in crate::simd) mod tq1_0;
pub(in crate::simd) mod tq2_0;

/// Where four rows begin. Where there are fewer, the last stands for those that lack; their sums are left out.
#[inline]
fn four_rows(bytes: &[u8], row_bytes: usize, first: usize, count: usize) -> [*const u8; 4] {
    let row = |row: usize| bytes[(first + row).min(count - 1) * row_bytes..].as_ptr();
    [row(0), row(1), row(2), row(3)]
}

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
