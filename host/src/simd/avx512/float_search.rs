//! Sums over a query and a block of float rows: 64 lanes are four vectors of f32, or eight of f64.

use std::arch::x86_64::*;

use tercet_core::number::Element;
use tercet_core::number::lanes::LANES;
use tercet_core::{bf16, f16};

use crate::simd::float_search::{Kernels, Sums};

/// Bytes that lines are fetched ahead, in the order in which they lie.
const AHEAD: usize = 12288;

/// A type of rows, 16 values at a time.
pub(in crate::simd) trait Row: Element {
    /// Loads those that the mask has, widened; zeros for the others.
    ///
    /// # Safety
    /// AVX-512 F, BW and VL; the masked values lie there.
    unsafe fn load(from: *const Self, mask: __mmask16) -> __m512;
}

impl Row for f32 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(from: *const Self, mask: __mmask16) -> __m512 {
        // SAFETY: the caller's.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }
}

impl Row for f16 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(from: *const Self, mask: __mmask16) -> __m512 {
        // SAFETY: the caller's; an f16 is its 16 bits.
        _mm512_cvtph_ps(unsafe { _mm256_maskz_loadu_epi16(mask, from.cast()) })
    }
}

impl Row for bf16 {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(from: *const Self, mask: __mmask16) -> __m512 {
        // SAFETY: the caller's; a bf16 is its 16 bits, the upper half of an f32.
        let halves = unsafe { _mm256_maskz_loadu_epi16(mask, from.cast()) };
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
    }
}

/// The kernels for rows of a type.
pub(in crate::simd) const fn kernels<T: Row>() -> Kernels<T> {
    Kernels {
        dots: sums::<T, false>,
        distances: sums::<T, true>,
        products: products::<T>,
        products_and_norms: products_and_norms::<T>,
    }
}

/// Σ q · r, or Σ (q − r)², for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sums<T: Row, const DISTANCE: bool>(query: &[f32], rows: &[T], sums: &mut Sums) {
    let dim = query.len();
    let mut fours = rows.chunks_exact(4 * dim);
    let (out, rest_out) = sums.split_at_mut(rows.len() / (4 * dim) * 4);
    for (rows, sums) in fours.by_ref().zip(out.as_chunks_mut::<4>().0) {
        *sums = of_rows::<T, DISTANCE, 4>(query, rows);
    }
    for (row, sum) in fours.remainder().chunks_exact(dim).zip(rest_out) {
        [*sum] = of_rows::<T, DISTANCE, 1>(query, row);
    }
}

/// The sums of N rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn of_rows<T: Row, const DISTANCE: bool, const N: usize>(query: &[f32], rows: &[T]) -> [f64; N] {
    let dim = query.len();
    // Adding a term to −0 gives the term.
    let mut lanes = [[_mm512_set1_ps(-0.0); 4]; N];
    for at in (0..dim).step_by(LANES) {
        let present = u64::MAX >> (LANES - (dim - at).min(LANES));
        for part in 0..4 {
            let mask = (present >> (16 * part)) as __mmask16;
            let at = at + 16 * part;
            // SAFETY: the mask has the values up to the query's end.
            let q = unsafe { f32::load(query.as_ptr().wrapping_add(at), mask) };
            for (row, lanes) in lanes.iter_mut().enumerate() {
                // Of each row as many bytes as were loaded.
                let ahead = rows.as_ptr().wrapping_add(N * at + 16 * row);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast::<i8>().wrapping_add(AHEAD));
                // SAFETY: the mask has the values up to that row's end.
                let x = unsafe { T::load(rows.as_ptr().wrapping_add(row * dim + at), mask) };
                let term = if DISTANCE {
                    let difference = _mm512_sub_ps(q, x);
                    _mm512_mul_ps(difference, difference)
                } else {
                    _mm512_mul_ps(q, x)
                };
                lanes[part] = _mm512_mask_add_ps(lanes[part], mask, lanes[part], term);
            }
        }
    }
    let mut sums = [0.0; N];
    for (sum, [a, b, c, d]) in sums.iter_mut().zip(lanes) {
        let sixteen = _mm512_add_ps(_mm512_add_ps(a, c), _mm512_add_ps(b, d));
        let eight = _mm256_add_ps(
            _mm512_castps512_ps256(sixteen),
            _mm512_extractf32x8_ps::<1>(sixteen),
        );
        let four = _mm_add_ps(
            _mm256_castps256_ps128(eight),
            _mm256_extractf128_ps::<1>(eight),
        );
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        *sum = f64::from(_mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two))));
    }
    sums
}

/// Σ q · r in f64 for each row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn products<T: Row>(query: &[f32], rows: &[T], sums: &mut Sums) {
    let dim = query.len();
    let mut pairs = rows.chunks_exact(2 * dim);
    let (out, rest_out) = sums.split_at_mut(rows.len() / (2 * dim) * 2);
    for (rows, sums) in pairs.by_ref().zip(out.as_chunks_mut::<2>().0) {
        [*sums, _] = wide::<T, 2, false>(query, rows);
    }
    for (row, sum) in pairs.remainder().chunks_exact(dim).zip(rest_out) {
        [[*sum], _] = wide::<T, 1, false>(query, row);
    }
}

/// The same, and Σ r².
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn products_and_norms<T: Row>(query: &[f32], rows: &[T], sums: &mut Sums, norms: &mut Sums) {
    let rows = rows.chunks_exact(query.len());
    for ((row, sum), norm) in rows.zip(sums).zip(norms) {
        [[*sum], [*norm]] = wide::<T, 1, true>(query, row);
    }
}

/// Σ q · r of N rows and, where they are asked for, Σ r². A product of f32 is exact in f64: 48 bits, and exponents from −298 to
/// 256; so the fused addition rounds as the separate one does.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn wide<T: Row, const N: usize, const NORMS: bool>(query: &[f32], rows: &[T]) -> [[f64; N]; 2] {
    let dim = query.len();
    let mut lanes = [[_mm512_set1_pd(-0.0); 8]; N];
    let mut squares = lanes;
    for at in (0..dim).step_by(LANES) {
        let present = u64::MAX >> (LANES - (dim - at).min(LANES));
        for part in 0..4 {
            let mask = (present >> (16 * part)) as __mmask16;
            let at = at + 16 * part;
            // SAFETY: the mask has the values up to the query's end.
            let q = unsafe { f32::load(query.as_ptr().wrapping_add(at), mask) };
            for row in 0..N {
                let ahead = rows.as_ptr().wrapping_add(N * at + 16 * row);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast::<i8>().wrapping_add(AHEAD));
                // SAFETY: the mask has the values up to that row's end.
                let x = unsafe { T::load(rows.as_ptr().wrapping_add(row * dim + at), mask) };
                for half in 0..2 {
                    let (q, x) = (doubles(q, half), doubles(x, half));
                    let mask = (mask >> (8 * half)) as __mmask8;
                    let lane = &mut lanes[row][2 * part + half];
                    *lane = _mm512_mask3_fmadd_pd(q, x, *lane, mask);
                    if NORMS {
                        let lane = &mut squares[row][2 * part + half];
                        *lane = _mm512_mask3_fmadd_pd(x, x, *lane, mask);
                    }
                }
            }
        }
    }
    let mut sums = [[0.0; N]; 2];
    for row in 0..N {
        sums[0][row] = halved(lanes[row]);
        if NORMS {
            sums[1][row] = halved(squares[row]);
        }
    }
    sums
}

/// Half of 16 values.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn doubles(x: __m512, half: usize) -> __m512d {
    _mm512_cvtps_pd(match half {
        0 => _mm512_castps512_ps256(x),
        _ => _mm512_extractf32x8_ps::<1>(x),
    })
}

/// Lane 0 after halving.
#[inline]
#[target_feature(enable = "avx512f")]
fn halved([a, b, c, d, e, f, g, h]: [__m512d; 8]) -> f64 {
    let (ae, bf) = (_mm512_add_pd(a, e), _mm512_add_pd(b, f));
    let (cg, dh) = (_mm512_add_pd(c, g), _mm512_add_pd(d, h));
    let eight = _mm512_add_pd(_mm512_add_pd(ae, cg), _mm512_add_pd(bf, dh));
    let four = _mm256_add_pd(
        _mm512_castpd512_pd256(eight),
        _mm512_extractf64x4_pd::<1>(eight),
    );
    let two = _mm_add_pd(
        _mm256_castpd256_pd128(four),
        _mm256_extractf128_pd::<1>(four),
    );
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}
