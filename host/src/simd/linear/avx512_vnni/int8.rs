//! Rows of int8: with the sign flipped, a weight is w + 128, unsigned, and Σ (w + 128)·x − 128·Σx is the sum. All of it
//! is modulo 2³², which the sum itself fits.

use std::arch::x86_64::*;

use super::sums::{fold_four, fold_fours, four_sums, store_four};
use super::{ask, four_rows, load};
use crate::simd::linear::{Activations, Line, Start};

/// Stores the activations in order, and −128·Σx.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.set(x);
    let mut sum = _mm512_setzero_si512();
    for line in &activations.lines {
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), load(line));
    }
    activations.start = vec![Start([-128 * _mm512_reduce_add_epi32(sum); 16])];
}

/// Processes row after row, in place; the sums of four are folded at once.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    assert!(bytes.len() == out.len() * x.len && x.lines.len() == x.len.div_ceil(64));
    match x.lines.len() {
        1 => short::<1>(bytes, x, out),
        2 => short::<2>(bytes, x, out),
        3 => short::<3>(bytes, x, out),
        4 => short::<4>(bytes, x, out),
        _ => long(bytes, x, out),
    }
}

/// Processes rows whose activations stay in `N` registers: sixteen at a time, so that their sums are one vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn short<const N: usize>(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let mut lines = [_mm512_setzero_si512(); N];
    for (loaded, line) in lines.iter_mut().zip(&x.lines) {
        *loaded = load(line);
    }
    let flip = _mm512_set1_epi8(i8::MIN);
    let start = _mm512_set1_epi32(x.start[0].0[0]);
    // A row's last vector may read bytes of the rows after it, where the activations are 0.
    let beyond = N * 64 - x.len;
    let whole = bytes.len().saturating_sub(beyond) / x.len / 16 * 16;
    let (sixteens, rest) = out.split_at_mut(whole);
    for (at, out) in sixteens.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let mut row = bytes[16 * at * x.len..].as_ptr();
        let mut folded = [_mm512_setzero_si512(); 4];
        for folded in &mut folded {
            let mut sums = [_mm512_setzero_si512(); 4];
            for sum in &mut sums {
                for (at, &line) in lines.iter().enumerate() {
                    // SAFETY: a row is followed by `beyond` bytes at least.
                    let weights = unsafe { _mm512_loadu_si512(row.add(64 * at).cast()) };
                    let flipped = _mm512_xor_si512(weights, flip);
                    *sum = _mm512_dpbusd_epi32(*sum, flipped, line);
                }
                row = row.wrapping_add(x.len);
            }
            ask(row, 4 * 64 * N);
            *folded = fold_four(sums);
        }
        let sums = _mm512_add_epi32(fold_fours(folded), start);
        // SAFETY: sixteen sums fit there.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sums) };
    }
    long(&bytes[whole * x.len..], x, rest);
}

/// Processes rows of any length.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn long(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let start = _mm_set1_epi32(x.start[0].0[0]);
    for first in (0..out.len()).step_by(4) {
        let rows = four_rows(bytes, x.len, first, out.len());
        let mut sums = [_mm512_setzero_si512(); 4];
        for (sum, row) in sums.iter_mut().zip(rows) {
            // SAFETY: a row has `len` bytes, and there are lines for as many.
            *sum = unsafe { dot(row, x) };
        }
        let sums = _mm_add_epi32(four_sums(fold_four(sums)), start);
        store_four(sums, &mut out[first..]);
    }
}

/// Returns Σ (w + 128)·x, by lanes.
///
/// # Safety
/// The row must have a byte for each activation, and these their lines.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn dot(row: *const u8, x: &Activations) -> __m512i {
    // Four chains hide the latency of the product.
    let mut sums = [_mm512_setzero_si512(); 4];
    let whole = x.len / 64;
    let (lines, rest) = x.lines.split_at(whole);
    let (fours, singles) = lines.as_chunks::<4>();
    let mut row = row;
    for lines in fours {
        for (sum, line) in sums.iter_mut().zip(lines) {
            ask(row, 64);
            // SAFETY: 64·whole bytes are read in these loops, no more than the row has.
            unsafe {
                *sum = add(*sum, _mm512_loadu_si512(row.cast()), line);
                row = row.add(64);
            }
        }
    }
    for (sum, line) in sums.iter_mut().zip(singles) {
        // SAFETY: as before.
        unsafe {
            *sum = add(*sum, _mm512_loadu_si512(row.cast()), line);
            row = row.add(64);
        }
    }
    if let Some(line) = rest.first() {
        let mask = u64::MAX >> (64 - x.len % 64);
        // SAFETY: the mask selects what is left of the row. Activations beyond are 0.
        let weights = unsafe { _mm512_maskz_loadu_epi8(mask, row.cast()) };
        sums[3] = add(sums[3], weights, line);
    }
    let [a, b, c, d] = sums;
    _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d))
}

/// Adds the products of 64 weights, with their signs flipped.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn add(sum: __m512i, weights: __m512i, line: &Line) -> __m512i {
    let flipped = _mm512_xor_si512(weights, _mm512_set1_epi8(i8::MIN));
    _mm512_dpbusd_epi32(sum, flipped, load(line))
}
