//! Dot products of one int8 query with packed ternary rows, 128 values at a time.
//!
//! A pair of bits is code + 1, an unsigned byte of at most 3 for `VPMADDUBSW`: two products of at most 3 · 128 and the
//! sums of four runs stay within 3,072 in 16 bits, and are widened at each step. The excess is Σq.

use std::arch::x86_64::*;

use super::search::total;
use crate::simd::search::{Dots, Norms, TernaryQuery};

/// Distance in bytes at which lines are prefetched, in memory order.
const AHEAD: usize = 4096;

/// As [`tercet_core::arch::plain::ternary_dot`] for each row.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn dots(query: &TernaryQuery, rows: &[u8], dots: &mut Dots) {
    let row_bytes = query.row_bytes();
    let mut pairs = rows.chunks_exact(2 * row_bytes);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (2 * row_bytes) * 2);
    for (rows, dots) in pairs.by_ref().zip(out.as_chunks_mut::<2>().0) {
        let [a, b] = sums::<2>(query, rows);
        let all = _mm_sub_epi32(total([a, b, a, b]), _mm_set1_epi32(query.sum()));
        *dots = [_mm_cvtsi128_si32(all), _mm_extract_epi32::<1>(all)];
    }
    for (row, dot) in pairs.remainder().chunks_exact(row_bytes).zip(rest_out) {
        let [sum] = sums::<1>(query, row);
        *dot = _mm_cvtsi128_si32(total([sum; 4])) - query.sum();
    }
}

/// Counts the nonzero codes of each row: the reference's loop, compiled for this set's population count.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::simd) fn norms(query: &TernaryQuery, rows: &[u8], norms: &mut Norms) {
    for (row, norm) in rows.chunks_exact(query.row_bytes()).zip(norms) {
        *norm = query.coded(row);
    }
}

/// Returns lanes of Σ (code + 1) · query of N rows.
#[inline]
#[target_feature(enable = "avx2")]
fn sums<const N: usize>(query: &TernaryQuery, rows: &[u8]) -> [__m256i; N] {
    let row_bytes = query.row_bytes();
    let (three, one) = (_mm256_set1_epi8(3), _mm256_set1_epi16(1));
    let runs = query.runs();
    let mut sums = [_mm256_setzero_si256(); N];
    for at in (0..row_bytes).step_by(32) {
        let ahead = rows.as_ptr().wrapping_add(N * at + AHEAD);
        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
        // SAFETY: runs are padded to whole vectors.
        let q = unsafe {
            [
                _mm256_loadu_si256(runs[0].as_ptr().add(at).cast()),
                _mm256_loadu_si256(runs[1].as_ptr().add(at).cast()),
                _mm256_loadu_si256(runs[2].as_ptr().add(at).cast()),
                _mm256_loadu_si256(runs[3].as_ptr().add(at).cast()),
            ]
        };
        for (row, sum) in sums.iter_mut().enumerate() {
            let x = &rows[row * row_bytes + at..(row + 1) * row_bytes];
            let x = if let Some(whole) = x.first_chunk::<32>() {
                let whole = whole.as_ptr();
                // SAFETY: 32 bytes lie there.
                unsafe { _mm256_loadu_si256(whole.cast()) }
            } else {
                let mut padded = [0; 32];
                padded[..x.len()].copy_from_slice(x);
                // SAFETY: 32 bytes lie there.
                unsafe { _mm256_loadu_si256(padded.as_ptr().cast()) }
            };
            let code = |x| _mm256_and_si256(x, three);
            let products = [
                _mm256_maddubs_epi16(code(x), q[0]),
                _mm256_maddubs_epi16(code(_mm256_srli_epi16::<2>(x)), q[1]),
                _mm256_maddubs_epi16(code(_mm256_srli_epi16::<4>(x)), q[2]),
                _mm256_maddubs_epi16(code(_mm256_srli_epi16::<6>(x)), q[3]),
            ];
            let [a, b, c, d] = products;
            let step = _mm256_add_epi16(_mm256_add_epi16(a, b), _mm256_add_epi16(c, d));
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(step, one));
        }
    }
    sums
}
