//! Five ternary weights a byte, row by row: the digits of a byte as [`tq1_0`](super::tq1_0) has them, without blocks.
//!
//! A lane's terms stay below 2³¹: a row has 205 vectors at most, each less than 2²¹.

use std::arch::x86_64::*;

use tercet_core::linear::Layout;

use super::tq1_0::digits;
use super::{AHEAD, load_lines, prefetch};
use crate::simd::linear::{Activations, Line, Start};

/// Columns of twelve bytes.
const COLS: usize = 60;
/// Bytes of as many.
const BYTES: usize = 12;

/// Five lines for each 64 bytes of a row: byte m of twelve is columns m + 12·n, n = 0 to 4. And −Σx.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    let bytes = x.len().div_ceil(COLS) * BYTES;
    let mut digits = vec![[0; 64]; bytes.div_ceil(64) * 5];
    for (group, x) in x.chunks(COLS).enumerate() {
        for (digit, x) in x.chunks(BYTES).enumerate() {
            for (m, &x) in x.iter().enumerate() {
                let byte = BYTES * group + m;
                digits[byte / 64 * 5 + digit][byte % 64] = x;
            }
        }
    }
    activations.lines = digits.into_iter().map(Line).collect();
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    activations.start = vec![Start([-sum; 16])];
}

/// Row after row, as they lie.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let row_bytes = Layout::FiveTrits.group_bytes(x.len).unwrap_or(1);
    assert!(x.lines.len() == row_bytes.div_ceil(64) * 5);
    let lines = x.lines.as_chunks::<5>().0;
    for (row, out) in bytes.chunks_exact(row_bytes).zip(out) {
        let (whole, rest) = row.as_chunks::<64>();
        let mut sum = _mm512_setzero_si512();
        for (bytes, lines) in whole.iter().zip(lines) {
            prefetch(bytes.as_ptr().wrapping_add(AHEAD));
            // SAFETY: 64 bytes lie there, and five lines.
            let terms = unsafe {
                let bytes = _mm512_loadu_si512(bytes.as_ptr().cast());
                digits(bytes, load_lines(lines.as_ptr()))
            };
            sum = _mm512_add_epi32(sum, terms);
        }
        if let (false, Some(lines)) = (rest.is_empty(), lines.get(whole.len())) {
            let mask = u64::MAX >> (64 - rest.len());
            // SAFETY: the mask selects what is left; five lines lie there.
            let terms = unsafe {
                let bytes = _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast());
                digits(bytes, load_lines(lines.as_ptr()))
            };
            sum = _mm512_add_epi32(sum, terms);
        }
        // Exact in each lane, and only so before they are added up.
        let sum = _mm512_srai_epi32::<8>(sum);
        *out = _mm512_reduce_add_epi32(sum) + x.start[0].0[0];
    }
}
