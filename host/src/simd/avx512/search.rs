//! Dot products of one int8 query with a block of rows, 32 values at a time in four rows, and which of them pass a bar.
//!
//! Bytes are widened to 16 bits, where a pair of products cannot saturate: 2 · 128² < 2³¹.

use std::arch::x86_64::*;

use tercet_core::search::Bar;

use crate::simd::search::{Dots, Norms};

/// Bytes that lines are fetched ahead, in the order in which they lie.
const AHEAD: usize = 12288;

/// As [`tercet_core::scalar::dot`] for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
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
        *dot = _mm512_reduce_add_epi32(sum);
    }
}

/// [`dots`], and [`tercet_core::scalar::norm`] for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::simd) fn dots_and_norms(
    query: &[i8],
    rows: &[i8],
    dots: &mut Dots,
    norms: &mut Norms,
) {
    let dim = query.len();
    let mut fours = rows.chunks_exact(4 * dim);
    let whole = rows.len() / (4 * dim) * 4;
    let (out, rest_out) = dots.split_at_mut(whole);
    let (out_norms, rest_norms) = norms.split_at_mut(whole);
    let out = out.as_chunks_mut::<4>().0.iter_mut();
    let out = out.zip(out_norms.as_chunks_mut::<4>().0);
    for (rows, (dots, norms)) in fours.by_ref().zip(out) {
        let [products, squares] = sums::<4, true>(query, rows);
        // SAFETY: four of each lie there.
        unsafe {
            _mm_storeu_si128(dots.as_mut_ptr().cast(), total(products));
            _mm_storeu_si128(norms.as_mut_ptr().cast(), total(squares));
        }
    }
    let rest = fours.remainder().chunks_exact(dim);
    for ((row, dot), norm) in rest.zip(rest_out).zip(rest_norms) {
        let [[products], [squares]] = sums::<1, true>(query, row);
        *dot = _mm512_reduce_add_epi32(products);
        *norm = _mm512_reduce_add_epi32(squares) as u32;
    }
}

/// Lanes of Σ row · query and, where they are asked for, of Σ row² of N rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn sums<const N: usize, const NORMS: bool>(query: &[i8], rows: &[i8]) -> [[__m512i; N]; 2] {
    let dim = query.len();
    let mut sums = [[_mm512_setzero_si512(); N]; 2];
    for at in (0..dim).step_by(32) {
        let mask = u32::MAX >> (32 - (dim - at).min(32));
        // SAFETY: the masked values of the query and of each of N rows lie there; a prefetch may name any address.
        unsafe {
            let load = |x: *const i8| _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, x));
            let q = load(query.as_ptr().add(at));
            for row in 0..N {
                // A line for two times 32 bytes.
                if row % 2 == 0 {
                    let ahead = N * at + 32 * row + AHEAD;
                    _mm_prefetch::<_MM_HINT_T0>(rows.as_ptr().wrapping_add(ahead));
                }
                let x = load(rows.as_ptr().add(row * dim + at));
                sums[0][row] = _mm512_add_epi32(sums[0][row], _mm512_madd_epi16(x, q));
                if NORMS {
                    sums[1][row] = _mm512_add_epi32(sums[1][row], _mm512_madd_epi16(x, x));
                }
            }
        }
    }
    sums
}

/// The total of each of four vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::simd) fn total([a, b, c, d]: [__m512i; 4]) -> __m128i {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    // Each quarter now holds a part of a, b, c and d.
    let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let half = _mm256_add_epi32(
        _mm512_castsi512_si256(all),
        _mm512_extracti64x4_epi64::<1>(all),
    );
    _mm_add_epi32(
        _mm256_castsi256_si128(half),
        _mm256_extracti128_si256::<1>(half),
    )
}

/// As [`Bar::admits`] for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn passing(bar: Bar, dots: &Dots, norms: &Norms) -> u64 {
    let (dots, norms) = (dots.as_chunks::<16>().0, norms.as_chunks::<16>().0);
    let mut mask = 0;
    for (at, (dots, norms)) in dots.iter().zip(norms).enumerate() {
        // SAFETY: 16 of each lie there.
        let (dots, norms) = unsafe {
            let dots = _mm512_loadu_si512(dots.as_ptr().cast());
            (dots, _mm512_loadu_si512(norms.as_ptr().cast()))
        };
        let pass = match bar {
            Bar::Open => u16::MAX,
            Bar::Dot(above) => _mm512_cmpgt_epi32_mask(dots, _mm512_set1_epi32(above)),
            Bar::Distance { below, query_norm } => {
                let lengths = _mm512_add_epi32(norms, _mm512_set1_epi32(query_norm as i32));
                let distances = _mm512_sub_epi32(lengths, _mm512_slli_epi32::<1>(dots));
                _mm512_cmplt_epu32_mask(distances, _mm512_set1_epi32(below as i32))
            }
            Bar::Cosine(square) => {
                let x = _mm512_cvtepi32_ps(dots);
                let squares = _mm512_mul_ps(x, _mm512_abs_ps(x));
                let bars = _mm512_mul_ps(_mm512_cvtepu32_ps(norms), _mm512_set1_ps(square));
                _mm512_cmp_ps_mask::<_CMP_GE_OQ>(squares, bars)
                    | _mm512_testn_epi32_mask(norms, norms)
            }
        };
        mask |= u64::from(pass) << (16 * at);
    }
    mask
}
