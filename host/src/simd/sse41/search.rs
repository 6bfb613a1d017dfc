//! Dot products of one int8 query with a block of rows, 8 values at a time in four rows, and which of them pass a bar.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use tercet_core::search::Bar;

use crate::simd::search::{Dots, Norms};

/// Bytes that lines are fetched ahead, in the order in which they lie.
const AHEAD: usize = 4096;

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "sse4.1")]
pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let mut fours = rows.chunks_exact(4 * dim);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (4 * dim) * 4);
    for (rows, dots) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        let [sums, _] = sums::<4, false>(query, rows);
        // SAFETY: four sums lie there.
        unsafe { _mm_storeu_si128(dots.as_mut_ptr().cast(), totals(sums)) };
    }
    for (row, dot) in fours.remainder().chunks_exact(dim).zip(rest_out) {
        let [[sum], _] = sums::<1, false>(query, row);
        *dot = _mm_cvtsi128_si32(totals([sum; 4]));
    }
}

/// [`dots`], and [`tercet_core::scalar::norm`] for each row.
#[target_feature(enable = "sse4.1")]
pub(in crate::simd) fn dots_and_norms(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let rows = rows.chunks_exact(query.len());
    for ((row, dot), norm) in rows.zip(dots).zip(norms) {
        let [[products], [squares]] = sums::<1, true>(query, row);
        let both = totals([products, squares, products, squares]);
        *dot = _mm_cvtsi128_si32(both);
        *norm = _mm_extract_epi32::<1>(both) as u32;
    }
}

/// Lanes of Σ row · query and, where they are asked for, of Σ row² of N rows.
#[inline]
#[target_feature(enable = "sse4.1")]
fn sums<const N: usize, const NORMS: bool>(query: &[i8], rows: &[i8]) -> [[__m128i; N]; 2] {
    let dim = query.len();
    let mut sums = [[_mm_setzero_si128(); N]; 2];
    let mut add = |q: __m128i, x: __m128i, row: usize| {
        let (q, x) = (_mm_cvtepi8_epi16(q), _mm_cvtepi8_epi16(x));
        sums[0][row] = _mm_add_epi32(sums[0][row], _mm_madd_epi16(x, q));
        if NORMS {
            sums[1][row] = _mm_add_epi32(sums[1][row], _mm_madd_epi16(x, x));
        }
    };
    let whole = dim / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: 8 values of the query and of each of N rows lie there; a prefetch may name any address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(N * at + AHEAD));
            let q = _mm_loadl_epi64(query.as_ptr().add(at).cast());
            for row in 0..N {
                let x = rows.as_ptr().add(row * dim + at);
                add(q, _mm_loadl_epi64(x.cast()), row);
            }
        }
    }
    if whole < dim {
        let q = last(&query[whole..]);
        for row in 0..N {
            add(q, last(&rows[row * dim + whole..(row + 1) * dim]), row);
        }
    }
    sums
}

/// Fewer than 8 values, and zeros.
#[inline]
#[target_feature(enable = "sse4.1")]
fn last(values: &[i8]) -> __m128i {
    let mut padded = [0u8; 8];
    for (padded, &value) in padded.iter_mut().zip(values) {
        *padded = value as u8;
    }
    _mm_cvtsi64_si128(i64::from_le_bytes(padded))
}

/// The total of each of four vectors.
#[inline]
#[target_feature(enable = "sse4.1")]
fn totals([a, b, c, d]: [__m128i; 4]) -> __m128i {
    let ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd))
}

/// A row for each that [`Bar::admits`], and, by cosine, for those with norms above 2³¹, which no rows have.
#[target_feature(enable = "sse4.1")]
pub(in crate::simd) fn passing(bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let (dots, norms) = (dots.as_chunks::<4>().0, norms.as_chunks::<4>().0);
    let mut mask = 0;
    for (at, (dots, norms)) in dots.iter().zip(norms).enumerate() {
        // SAFETY: four of each lie there.
        let (dots, norms) = unsafe {
            let dots = _mm_loadu_si128(dots.as_ptr().cast());
            (dots, _mm_loadu_si128(norms.as_ptr().cast()))
        };
        let pass = match bar {
            Bar::Open => _mm_set1_epi32(-1),
            Bar::Dot(above) => _mm_cmpgt_epi32(dots, _mm_set1_epi32(above)),
            Bar::Distance { below, query_norm } => {
                let lengths = _mm_add_epi32(norms, _mm_set1_epi32(query_norm as i32));
                let distances = _mm_sub_epi32(lengths, _mm_slli_epi32::<1>(dots));
                // Unsigned order is signed order with the top bits flipped.
                let below = _mm_set1_epi32(below as i32 ^ i32::MIN);
                _mm_cmpgt_epi32(below, _mm_xor_si128(distances, _mm_set1_epi32(i32::MIN)))
            }
            Bar::Cosine(square) => {
                let x = _mm_cvtepi32_ps(dots);
                let magnitude = _mm_andnot_ps(_mm_set1_ps(-0.0), x);
                let squares = _mm_mul_ps(x, magnitude);
                let bars = _mm_mul_ps(_mm_cvtepi32_ps(norms), _mm_set1_ps(square));
                let reached = _mm_castps_si128(_mm_cmpge_ps(squares, bars));
                _mm_or_si128(reached, _mm_cmpgt_epi32(_mm_set1_epi32(1), norms))
            }
        };
        let bits = _mm_movemask_ps(_mm_castsi128_ps(pass)) as u32;
        mask |= u64::from(bits) << (4 * at);
    }
    mask
}
