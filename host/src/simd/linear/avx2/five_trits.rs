//! Rows of five ternary columns per byte, in place: bytes as in [TQ1_0](super::tq1_0), twelve for 60 columns.

use std::arch::x86_64::*;

use super::four_rows;
use super::sums::{fold_four, four_sums, store_four};
use super::tq1_0::{MOST, digits};
use crate::simd::linear::{Activations, Line, Start};

/// Columns per group.
const COLS: usize = 60;
/// Bytes per group.
const BYTES: usize = 12;
/// Lines for two vectors of bytes.
const LINES: usize = 5;

/// Vectors whose sums fit 16 bits.
const FLUSH: usize = 12;
const _: () = assert!(FLUSH as i32 * MOST <= i16::MAX as i32);

/// Stores for each vector of bytes the activations of their first digits, then of their second ones, and so on; and
/// −Σx.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    let vectors = (x.len().div_ceil(COLS) * BYTES).div_ceil(32);
    activations.lines = vec![Line([0; 64]); vectors.div_ceil(2) * LINES];
    for (group, x) in x.chunks(COLS).enumerate() {
        for (digit, x) in x.chunks(BYTES).enumerate() {
            for (byte, &x) in (group * BYTES..).zip(x) {
                let half = byte / 32 * 5 + digit;
                activations.lines[half / 2].0[half % 2 * 32 + byte % 32] = x;
            }
        }
    }
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    activations.start = vec![Start([-sum; 16])];
}

/// Processes four rows at a time, in place.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let row_bytes = x.len.div_ceil(COLS) * BYTES;
    let vectors = row_bytes.div_ceil(32);
    assert!(bytes.len() == out.len() * row_bytes);
    assert!(x.lines.len() == vectors.div_ceil(2) * LINES);
    let start = _mm_set1_epi32(x.start[0].0[0]);
    let lanes = (row_bytes - (vectors - 1) * 32) / 4;
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes as i32), lane);
    for first in (0..out.len()).step_by(4) {
        let rows = four_rows(bytes, row_bytes, first, out.len());
        let mut wide = [_mm256_setzero_si256(); 4];
        for from in (0..vectors).step_by(FLUSH) {
            let mut sums = [_mm256_setzero_si256(); 4];
            for at in from..vectors.min(from + FLUSH) {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    let bytes = row.wrapping_add(32 * at);
                    // SAFETY: a row has all of its vectors but the last one, of which the mask selects what is left.
                    *sum = unsafe {
                        let bytes = match at + 1 == vectors {
                            true => _mm256_maskload_epi32(bytes.cast(), mask),
                            false => _mm256_loadu_si256(bytes.cast()),
                        };
                        digits(*sum, bytes, x.lines.as_ptr(), 5 * at)
                    };
                }
            }
            for (wide, sum) in wide.iter_mut().zip(sums) {
                let sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
                *wide = _mm256_add_epi32(*wide, sum);
            }
        }
        let sums = _mm_add_epi32(four_sums(fold_four(wide)), start);
        store_four(sums, &mut out[first..]);
    }
}
