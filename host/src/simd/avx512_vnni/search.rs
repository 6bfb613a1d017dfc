//! Dot products of one int8 query with a block of rows, 64 values at a time in four rows.
//!
//! `VPDPBUSD` multiplies unsigned bytes by signed ones: row + 128 (the sign bit flipped) by the query gives the dot product and
//! 128 · Σq, which is the same for all rows. Four products of a lane stay below 2¹⁷, and lanes wrap as the reference does.

use std::arch::x86_64::*;

use crate::simd::avx512::search::total;
use crate::simd::search::{Dots, Norms};

/// Bytes that lines are fetched ahead: in the order in which they lie, while loads go to and fro between rows. Without it a scan
/// takes 1.3 times as long from memory and 1.5 times from the last cache (Zen 5).
const AHEAD: usize = 12288;

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let excess = _mm_set1_epi32(sum(query).wrapping_mul(128));
    let mut fours = rows.chunks_exact(4 * dim);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (4 * dim) * 4);
    for (rows, dots) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        let sums = total(sums::<4>(query, rows));
        let exact = _mm_sub_epi32(sums, excess);
        // SAFETY: four sums lie there.
        unsafe { _mm_storeu_si128(dots.as_mut_ptr().cast(), exact) };
    }
    for (row, dot) in fours.remainder().chunks_exact(dim).zip(rest_out) {
        let [sums] = sums::<1>(query, row);
        *dot = _mm512_reduce_add_epi32(sums).wrapping_sub(_mm_cvtsi128_si32(excess));
    }
}

/// [`dots`], and [`tercet_core::scalar::norm`] for each row: (row + 128) · row is its square and 128 · Σrow.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in crate::simd) fn dots_and_norms(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let dim = query.len();
    let excess = _mm_set1_epi32(sum(query).wrapping_mul(128));
    let mut fours = rows.chunks_exact(4 * dim);
    let whole = rows.len() / (4 * dim) * 4;
    let (out, rest_out) = dots.split_at_mut(whole);
    let (out_norms, rest_norms) = norms.split_at_mut(whole);
    let out = out.as_chunks_mut::<4>().0.iter_mut();
    let out = out.zip(out_norms.as_chunks_mut::<4>().0);
    for (rows, (dots, norms)) in fours.by_ref().zip(out) {
        let [products, squares, of_rows] = all_sums::<4>(query, rows);
        let exact = _mm_sub_epi32(total(products), excess);
        let of_rows = _mm_slli_epi32::<7>(total(of_rows));
        let squares = _mm_sub_epi32(total(squares), of_rows);
        // SAFETY: four of each lie there.
        unsafe {
            _mm_storeu_si128(dots.as_mut_ptr().cast(), exact);
            _mm_storeu_si128(norms.as_mut_ptr().cast(), squares);
        }
    }
    let rest = fours.remainder().chunks_exact(dim);
    for ((row, dot), norm) in rest.zip(rest_out).zip(rest_norms) {
        let [[products], [squares], [of_rows]] = all_sums::<1>(query, row);
        *dot = _mm512_reduce_add_epi32(products).wrapping_sub(_mm_cvtsi128_si32(excess));
        let of_rows = _mm512_reduce_add_epi32(of_rows).wrapping_mul(128);
        *norm = _mm512_reduce_add_epi32(squares).wrapping_sub(of_rows) as u32;
    }
}

/// Lanes of Σ (row + 128) · query of N rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn sums<const N: usize>(query: &[i8], rows: &[i8]) -> [__m512i; N] {
    let dim = query.len();
    let flip = _mm512_set1_epi8(-128);
    let mut sums = [_mm512_setzero_si512(); N];
    for at in (0..dim).step_by(64) {
        let mask = u64::MAX >> (64 - (dim - at).min(64));
        // SAFETY: the masked values of the query and of each of N rows lie there; a prefetch may name any address. Beyond them the
        // query has zeros.
        unsafe {
            let q = _mm512_maskz_loadu_epi8(mask, query.as_ptr().add(at));
            for (row, sum) in sums.iter_mut().enumerate() {
                let ahead = N * at + 64 * row + AHEAD;
                _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(ahead));
                let x = _mm512_maskz_loadu_epi8(mask, rows.as_ptr().add(row * dim + at));
                *sum = _mm512_dpbusd_epi32(*sum, _mm512_xor_si512(x, flip), q);
            }
        }
    }
    sums
}

/// Lanes of Σ (row + 128) · query, Σ (row + 128) · row and Σ row of N rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn all_sums<const N: usize>(query: &[i8], rows: &[i8]) -> [[__m512i; N]; 3] {
    let dim = query.len();
    let (flip, one) = (_mm512_set1_epi8(-128), _mm512_set1_epi8(1));
    let [mut products, mut squares, mut of_rows] = [[_mm512_setzero_si512(); N]; 3];
    for at in (0..dim).step_by(64) {
        let mask = u64::MAX >> (64 - (dim - at).min(64));
        // SAFETY: the masked values of the query and of each of N rows lie there; a prefetch may name any address.
        unsafe {
            let q = _mm512_maskz_loadu_epi8(mask, query.as_ptr().add(at));
            let sums = products.iter_mut().zip(&mut squares).zip(&mut of_rows);
            for (row, ((product, square), of_row)) in sums.enumerate() {
                let ahead = N * at + 64 * row + AHEAD;
                _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(ahead));
                let x = rows.as_ptr().add(row * dim + at);
                let x = _mm512_maskz_loadu_epi8(mask, x);
                let flipped = _mm512_xor_si512(x, flip);
                *product = _mm512_dpbusd_epi32(*product, flipped, q);
                *square = _mm512_dpbusd_epi32(*square, flipped, x);
                *of_row = _mm512_dpbusd_epi32(*of_row, one, x);
            }
        }
    }
    [products, squares, of_rows]
}

/// Σ of values.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn sum(values: &[i8]) -> i32 {
    let one = _mm512_set1_epi8(1);
    let mut sum = _mm512_setzero_si512();
    for at in (0..values.len()).step_by(64) {
        let mask = u64::MAX >> (64 - (values.len() - at).min(64));
        // SAFETY: the masked values lie there.
        let x = unsafe { _mm512_maskz_loadu_epi8(mask, values.as_ptr().add(at)) };
        sum = _mm512_dpbusd_epi32(sum, one, x);
    }
    _mm512_reduce_add_epi32(sum)
}
