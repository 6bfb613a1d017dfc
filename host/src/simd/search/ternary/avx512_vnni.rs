//! Dot products of one int8 query with packed ternary rows, 256 values at a time.
//!
//! A pair of bits is code + 1, an unsigned byte of at most 3 for `VPDPBUSD`; the excess is Σq.

use std::arch::x86_64::*;

use crate::simd::avx512::search::total;
use crate::simd::search::{Dots, Norms, TernaryQuery};

/// Distance in bytes at which lines are prefetched, in memory order.
const AHEAD: usize = 4096;

/// As [`tercet_core::arch::plain::ternary_dot`] for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn dots(query: &TernaryQuery, rows: &[u8], dots: &mut Dots) {
    let row_bytes = query.row_bytes();
    let excess = _mm_set1_epi32(query.sum());
    let mut fours = rows.chunks_exact(4 * row_bytes);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (4 * row_bytes) * 4);
    for (rows, dots) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        let exact = _mm_sub_epi32(total(sums::<4>(query, rows)), excess);
        // SAFETY: four sums lie there.
        unsafe { _mm_storeu_si128(dots.as_mut_ptr().cast(), exact) };
    }
    for (row, dot) in fours.remainder().chunks_exact(row_bytes).zip(rest_out) {
        let [sums] = sums::<1>(query, row);
        *dot = _mm512_reduce_add_epi32(sums) - query.sum();
    }
}

/// Counts the nonzero codes of each row: the reference's loop, compiled for this set's population count.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt")]
pub(in crate::simd) fn norms(query: &TernaryQuery, rows: &[u8], norms: &mut Norms) {
    for (row, norm) in rows.chunks_exact(query.row_bytes()).zip(norms) {
        *norm = query.coded(row);
    }
}

/// Returns lanes of Σ (code + 1) · query of N rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn sums<const N: usize>(query: &TernaryQuery, rows: &[u8]) -> [__m512i; N] {
    let row_bytes = query.row_bytes();
    let three = _mm512_set1_epi8(3);
    let runs = query.runs();
    let mut sums = [_mm512_setzero_si512(); N];
    for at in (0..row_bytes).step_by(64) {
        let mask = u64::MAX >> (64 - (row_bytes - at).min(64));
        // SAFETY: runs are padded to whole vectors.
        let q = unsafe {
            [
                _mm512_loadu_si512(runs[0].as_ptr().add(at).cast()),
                _mm512_loadu_si512(runs[1].as_ptr().add(at).cast()),
                _mm512_loadu_si512(runs[2].as_ptr().add(at).cast()),
                _mm512_loadu_si512(runs[3].as_ptr().add(at).cast()),
            ]
        };
        for (row, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the masked bytes of each of N rows lie there; a prefetch may name any address.
            let x = unsafe {
                let ahead = N * at + 64 * row + AHEAD;
                _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(ahead).cast());
                let x = rows.as_ptr().add(row * row_bytes + at);
                _mm512_maskz_loadu_epi8(mask, x.cast())
            };
            let code = _mm512_and_si512(x, three);
            *sum = _mm512_dpbusd_epi32(*sum, code, q[0]);
            let code = _mm512_and_si512(_mm512_srli_epi16::<2>(x), three);
            *sum = _mm512_dpbusd_epi32(*sum, code, q[1]);
            let code = _mm512_and_si512(_mm512_srli_epi16::<4>(x), three);
            *sum = _mm512_dpbusd_epi32(*sum, code, q[2]);
            let code = _mm512_and_si512(_mm512_srli_epi16::<6>(x), three);
            *sum = _mm512_dpbusd_epi32(*sum, code, q[3]);
        }
    }
    sums
}
