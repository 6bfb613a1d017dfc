//! Rows of weights times one vector, 64 bytes at a time: `vpdpbusd` multiplies bytes without a sign by activations with one.

use std::arch::x86_64::*;

use crate::simd::linear::Line;

pub(in crate::simd) mod codes;
pub(in crate::simd) mod int8;
mod sums;
pub(in crate::simd) mod ternary_lanes;
pub(in crate::simd) mod tiles;
pub(in crate::simd) mod tq2_0;

/// Where four rows begin. Where there are fewer, the last stands for those that lack; their sums are left out.
#[inline]
fn four_rows(bytes: &[u8], row_bytes: usize, first: usize, count: usize) -> [*const u8; 4] {
    let row = |row: usize| bytes[(first + row).min(count - 1) * row_bytes..].as_ptr();
    [row(0), row(1), row(2), row(3)]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(line: &Line) -> __m512i {
    // SAFETY: a line is 64 bytes, aligned.
    unsafe { _mm512_load_si512(line.0.as_ptr().cast()) }
}

/// How far ahead of its use a weight is asked for, in bytes: what memory gives in the time that it takes to answer.
const AHEAD: usize = 2048;

/// Asks for the line of an address that will be read soon, or lies past the end and will not.
#[inline]
fn prefetch(address: *const u8) {
    // SAFETY: a prefetch of any address is only a hint.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}
