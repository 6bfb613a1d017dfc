//! Dot products of one int8 query with a block of rows, 32 values at a time in four rows.
//!
//! As for AVX-512 VNNI: row + 128 as unsigned bytes by the query as signed ones, less 128 · Σq.

use std::arch::x86_64::*;

use crate::simd::avx2::search::total;
use crate::simd::search::{Dots, Norms};

/// Bytes that lines are fetched ahead, in the order in which they lie.
const AHEAD: usize = 12288;

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "avx2,avxvnni")]
pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let [_, _, [of_query]] = all_sums::<1>(query, query);
    let excess = _mm_slli_epi32::<7>(total([of_query; 4]));
    let mut fours = rows.chunks_exact(4 * dim);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (4 * dim) * 4);
    for (rows, dots) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        let exact = _mm_sub_epi32(total(sums::<4>(query, rows)), excess);
        // SAFETY: four sums lie there.
        unsafe { _mm_storeu_si128(dots.as_mut_ptr().cast(), exact) };
    }
    for (row, dot) in fours.remainder().chunks_exact(dim).zip(rest_out) {
        let [sum] = sums::<1>(query, row);
        *dot = _mm_cvtsi128_si32(_mm_sub_epi32(total([sum; 4]), excess));
    }
}

/// [`dots`], and [`tercet_core::scalar::norm`] for each row: (row + 128) · row is its square and 128 · Σrow.
#[target_feature(enable = "avx2,avxvnni")]
pub(in crate::simd) fn dots_and_norms(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let [_, _, [of_query]] = all_sums::<1>(query, query);
    let rows = rows.chunks_exact(query.len());
    for ((row, dot), norm) in rows.zip(dots).zip(norms) {
        let [[products], [squares], [of_row]] = all_sums::<1>(query, row);
        // Products, squares, and what each has too much.
        let all = total([products, squares, of_query, of_row]);
        let excess = _mm_slli_epi32::<7>(_mm_unpackhi_epi64(all, all));
        let exact = _mm_sub_epi32(all, excess);
        *dot = _mm_cvtsi128_si32(exact);
        *norm = _mm_extract_epi32::<1>(exact) as u32;
    }
}

/// Lanes of Σ (row + 128) · query of N rows.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
fn sums<const N: usize>(query: &[i8], rows: &[i8]) -> [__m256i; N] {
    let dim = query.len();
    let flip = _mm256_set1_epi8(-128);
    let mut sums = [_mm256_setzero_si256(); N];
    let whole = dim / 32 * 32;
    for at in (0..whole).step_by(32) {
        // SAFETY: 32 values of the query and of each of N rows lie there; a prefetch may name any address.
        unsafe {
            let q = _mm256_loadu_si256(query.as_ptr().add(at).cast());
            for (row, sum) in sums.iter_mut().enumerate() {
                // A line for two times 32 bytes.
                if row % 2 == 0 {
                    let ahead = N * at + 32 * row + AHEAD;
                    _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(ahead));
                }
                let x = rows.as_ptr().add(row * dim + at);
                let x = _mm256_xor_si256(_mm256_loadu_si256(x.cast()), flip);
                *sum = _mm256_dpbusd_avx_epi32(*sum, x, q);
            }
        }
    }
    if whole < dim {
        let q = last(&query[whole..]);
        for (row, sum) in sums.iter_mut().enumerate() {
            let x = last(&rows[row * dim + whole..(row + 1) * dim]);
            *sum = _mm256_dpbusd_avx_epi32(*sum, _mm256_xor_si256(x, flip), q);
        }
    }
    sums
}

/// Lanes of Σ (row + 128) · query, Σ (row + 128) · row and Σ row of N rows.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
fn all_sums<const N: usize>(query: &[i8], rows: &[i8]) -> [[__m256i; N]; 3] {
    let dim = query.len();
    let (flip, one) = (_mm256_set1_epi8(-128), _mm256_set1_epi8(1));
    let mut sums = [[_mm256_setzero_si256(); N]; 3];
    let load = |values: &[i8]| match values.first_chunk::<32>() {
        // SAFETY: 32 values lie there.
        Some(whole) => unsafe { _mm256_loadu_si256(whole.as_ptr().cast()) },
        None => last(values),
    };
    for at in (0..dim).step_by(32) {
        let q = load(&query[at..]);
        for row in 0..N {
            let x = &rows[row * dim + at..(row + 1) * dim];
            _mm_prefetch::<_MM_HINT_T0>(x.as_ptr().wrapping_add(AHEAD));
            let x = load(x);
            let flipped = _mm256_xor_si256(x, flip);
            sums[0][row] = _mm256_dpbusd_avx_epi32(sums[0][row], flipped, q);
            sums[1][row] = _mm256_dpbusd_avx_epi32(sums[1][row], flipped, x);
            sums[2][row] = _mm256_dpbusd_avx_epi32(sums[2][row], one, x);
        }
    }
    sums
}

/// Fewer than 32 values, and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn last(values: &[i8]) -> __m256i {
    let mut padded = [0i8; 32];
    padded[..values.len()].copy_from_slice(values);
    // SAFETY: 32 values lie there.
    unsafe { _mm256_loadu_si256(padded.as_ptr().cast()) }
}
