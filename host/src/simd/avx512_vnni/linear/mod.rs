//! Rows of weights times one vector, 64 bytes at a time: `vpdpbusd` multiplies bytes without a sign by activations with one.

use std::arch::x86_64::*;

use crate::simd::linear::Line;

mod blocks;
pub(in crate::simd) mod five_trits;
mod fours;
pub(in crate::simd) mod int4;
pub(in crate::simd) mod int8;
pub(in crate::simd) mod int8_pairs;
mod sums;
pub(in crate::simd) mod ternary_lanes;
pub(in crate::simd) mod tiles;
pub(in crate::simd) mod tq1_0;
pub(in crate::simd) mod tq2_0;

pub(in crate::simd) use fours::{q2_0, q4_0, q8_0};

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

/// # Safety
/// So many lines must lie there, and the set must run here.
#[inline(always)]
unsafe fn load_lines<const N: usize>(lines: *const Line) -> [__m512i; N] {
    // SAFETY: as the caller promises; a line is 64 bytes, aligned.
    unsafe {
        let mut loaded = [_mm512_setzero_si512(); N];
        for (at, loaded) in loaded.iter_mut().enumerate() {
            *loaded = _mm512_load_si512(lines.add(at).cast());
        }
        loaded
    }
}

/// How far ahead of its use a weight is asked for, in bytes: what memory gives in the time that it takes to answer.
const AHEAD: usize = 2048;

/// Asks for the line of an address that will be read soon, or lies past the end and will not.
#[inline]
fn prefetch(address: *const u8) {
    // SAFETY: a prefetch of any address is only a hint.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}
