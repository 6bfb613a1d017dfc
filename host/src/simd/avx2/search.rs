//! Dot products of one int8 query with a block of rows, 16 values at a time in four rows, and which of them pass a bar.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use tercet_core::search::Bar;

use crate::simd::search::{Dots, Norms};

/// Bytes that lines are fetched ahead, in the order in which they lie.
const AHEAD: usize = 12288;

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn dots(query: &[i8], rows: &[i8], dots: &mut Dots) {
    let dim = query.len();
    let mut fours = rows.chunks_exact(4 * dim);
    let (out, rest_out) = dots.split_at_mut(rows.len() / (4 * dim) * 4);
    for (rows, dots) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        let [sums, _] = sums::<4, false>(query, rows);
        // SAFETY: four sums lie there.
        unsafe { _mm_storeu_si128(dots.as_mut_ptr().cast(), total(sums)) };
    }
    for (row, dot) in fours.remainder().chunks_exact(dim).zip(rest_out) {
        let [[sum], _] = sums::<1, false>(query, row);
        *dot = _mm_cvtsi128_si32(total([sum; 4]));
    }
}

/// [`dots`], and [`tercet_core::scalar::norm`] for each row.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn dots_and_norms(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let dim = query.len();
    let mut pairs = rows.chunks_exact(2 * dim);
    let whole = rows.len() / (2 * dim) * 2;
    let (out, rest_out) = dots.split_at_mut(whole);
    let (out_norms, rest_norms) = norms.split_at_mut(whole);
    let out = out.as_chunks_mut::<2>().0.iter_mut();
    let out = out.zip(out_norms.as_chunks_mut::<2>().0);
    for (rows, (dots, norms)) in pairs.by_ref().zip(out) {
        let [[a, b], [a_squares, b_squares]] = sums::<2, true>(query, rows);
        let all = total([a, b, a_squares, b_squares]);
        *dots = [_mm_cvtsi128_si32(all), _mm_extract_epi32::<1>(all)];
        *norms = [
            _mm_extract_epi32::<2>(all) as u32,
            _mm_extract_epi32::<3>(all) as u32,
        ];
    }
    let rest = pairs.remainder().chunks_exact(dim);
    for ((row, dot), norm) in rest.zip(rest_out).zip(rest_norms) {
        let [[products], [squares]] = sums::<1, true>(query, row);
        let all = total([products, squares, products, squares]);
        *dot = _mm_cvtsi128_si32(all);
        *norm = _mm_extract_epi32::<1>(all) as u32;
    }
}

/// Lanes of Σ row · query and, where they are asked for, of Σ row² of N rows.
#[inline]
#[target_feature(enable = "avx2")]
fn sums<const N: usize, const NORMS: bool>(query: &[i8], rows: &[i8]) -> [[__m256i; N]; 2] {
    let dim = query.len();
    let mut sums = [[_mm256_setzero_si256(); N]; 2];
    let mut add = |q: __m256i, x: __m256i, row: usize| {
        sums[0][row] = _mm256_add_epi32(sums[0][row], _mm256_madd_epi16(x, q));
        if NORMS {
            sums[1][row] = _mm256_add_epi32(sums[1][row], _mm256_madd_epi16(x, x));
        }
    };
    let whole = dim / 16 * 16;
    for at in (0..whole).step_by(16) {
        // SAFETY: 16 values of the query and of each of N rows lie there; a prefetch may name any address.
        unsafe {
            // A line for four times 16 bytes.
            _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(N * at + AHEAD));
            let q = _mm256_cvtepi8_epi16(_mm_loadu_si128(query.as_ptr().add(at).cast()));
            for row in 0..N {
                let x = rows.as_ptr().add(row * dim + at);
                add(q, _mm256_cvtepi8_epi16(_mm_loadu_si128(x.cast())), row);
            }
        }
    }
    if whole < dim {
        let q = _mm256_cvtepi8_epi16(last(&query[whole..]));
        for row in 0..N {
            let x = last(&rows[row * dim + whole..(row + 1) * dim]);
            add(q, _mm256_cvtepi8_epi16(x), row);
        }
    }
    sums
}

/// Fewer than 16 values, and zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn last(values: &[i8]) -> __m128i {
    let mut padded = [0i8; 16];
    padded[..values.len()].copy_from_slice(values);
    // SAFETY: 16 values lie there.
    unsafe { _mm_loadu_si128(padded.as_ptr().cast()) }
}

/// The total of each of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn total([a, b, c, d]: [__m256i; 4]) -> __m128i {
    let all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    _mm_add_epi32(
        _mm256_castsi256_si128(all),
        _mm256_extracti128_si256::<1>(all),
    )
}

/// A row for each that [`Bar::admits`], and, by cosine, for those with norms above 2³¹, which no rows have.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn passing(bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let (dots, norms) = (dots.as_chunks::<8>().0, norms.as_chunks::<8>().0);
    let mut mask = 0;
    for (at, (dots, norms)) in dots.iter().zip(norms).enumerate() {
        // SAFETY: eight of each lie there.
        let (dots, norms) = unsafe {
            let dots = _mm256_loadu_si256(dots.as_ptr().cast());
            (dots, _mm256_loadu_si256(norms.as_ptr().cast()))
        };
        let pass = match bar {
            Bar::Open => _mm256_set1_epi32(-1),
            Bar::Dot(above) => _mm256_cmpgt_epi32(dots, _mm256_set1_epi32(above)),
            Bar::Distance { below, query_norm } => {
                let lengths = _mm256_add_epi32(norms, _mm256_set1_epi32(query_norm as i32));
                let distances = _mm256_sub_epi32(lengths, _mm256_slli_epi32::<1>(dots));
                // Unsigned order is signed order with the top bits flipped.
                let flip = _mm256_set1_epi32(i32::MIN);
                let below = _mm256_set1_epi32(below as i32 ^ i32::MIN);
                _mm256_cmpgt_epi32(below, _mm256_xor_si256(distances, flip))
            }
            Bar::Cosine(square) => {
                let x = _mm256_cvtepi32_ps(dots);
                let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
                let squares = _mm256_mul_ps(x, magnitude);
                let bars = _mm256_mul_ps(_mm256_cvtepi32_ps(norms), _mm256_set1_ps(square));
                let reached = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(squares, bars));
                let none = _mm256_cmpgt_epi32(_mm256_set1_epi32(1), norms);
                _mm256_or_si256(reached, none)
            }
        };
        let bits = _mm256_movemask_ps(_mm256_castsi256_ps(pass)) as u32;
        mask |= u64::from(bits) << (8 * at);
    }
    mask
}
