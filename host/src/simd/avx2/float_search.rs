//! Sums over a query and a block of float rows: 64 lanes are eight vectors of f32, or sixteen of f64 in two passes.

use std::arch::x86_64::*;

use tercet_core::number::Element;
use tercet_core::number::lanes::LANES;
use tercet_core::{bf16, f16};

use crate::simd::float_search::{Kernels, Sums};

/// Bytes that lines are fetched ahead.
const AHEAD: usize = 4096;

/// A type of rows, eight values at a time.
pub(in crate::simd) trait Row: Element {
    /// Loads eight values, widened.
    ///
    /// # Safety
    /// AVX2 and F16C; eight values lie there.
    unsafe fn load(from: *const Self) -> __m256;
}

impl Row for f32 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn load(from: *const Self) -> __m256 {
        // SAFETY: the caller's.
        unsafe { _mm256_loadu_ps(from) }
    }
}

impl Row for f16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn load(from: *const Self) -> __m256 {
        // SAFETY: the caller's; an f16 is its 16 bits.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(from.cast()) })
    }
}

impl Row for bf16 {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn load(from: *const Self) -> __m256 {
        // SAFETY: the caller's; a bf16 is its 16 bits, the upper half of an f32.
        let halves = unsafe { _mm_loadu_si128(from.cast()) };
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
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

/// Up to eight values of a slice, and zeros; how many there are.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load<T: Row>(values: &[T]) -> __m256 {
    if let Some(eight) = values.first_chunk::<8>() {
        // SAFETY: eight values lie there.
        return unsafe { T::load(eight.as_ptr()) };
    }
    let mut padded = [T::default(); 8];
    padded[..values.len()].copy_from_slice(values);
    // SAFETY: eight values lie there.
    unsafe { T::load(padded.as_ptr()) }
}

/// All bits set in the first `count` of eight places.
#[inline]
#[target_feature(enable = "avx2")]
fn first(count: usize) -> __m256i {
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), places)
}

/// Σ q · r, or Σ (q − r)², for each row.
#[target_feature(enable = "avx2,f16c")]
fn sums<T: Row, const DISTANCE: bool>(query: &[f32], rows: &[T], sums: &mut Sums) {
    for (row, sum) in rows.chunks_exact(query.len()).zip(sums) {
        *sum = f64::from(of_row::<T, DISTANCE>(query, row));
    }
}

/// The sum of a row.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn of_row<T: Row, const DISTANCE: bool>(query: &[f32], row: &[T]) -> f32 {
    let term = |q: __m256, x: __m256| {
        if DISTANCE {
            let difference = _mm256_sub_ps(q, x);
            _mm256_mul_ps(difference, difference)
        } else {
            _mm256_mul_ps(q, x)
        }
    };
    // Adding a term to −0 gives the term.
    let mut lanes = [_mm256_set1_ps(-0.0); 8];
    let (rows, rest) = row.as_chunks::<LANES>();
    let (queries, rest_query) = query.as_chunks::<LANES>();
    for (q, x) in queries.iter().zip(rows) {
        for (part, lane) in lanes.iter_mut().enumerate() {
            let x = x[8 * part..].as_ptr();
            _mm_prefetch::<_MM_HINT_T0>(x.cast::<i8>().wrapping_add(AHEAD));
            // SAFETY: eight values of each lie there.
            let (q, x) = unsafe { (f32::load(q[8 * part..].as_ptr()), T::load(x)) };
            *lane = _mm256_add_ps(*lane, term(q, x));
        }
    }
    let rest = rest_query.chunks(8).zip(rest.chunks(8));
    for (lane, (q, x)) in lanes.iter_mut().zip(rest) {
        let sum = _mm256_add_ps(*lane, term(load(q), load(x)));
        *lane = _mm256_blendv_ps(*lane, sum, _mm256_castsi256_ps(first(x.len())));
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let (ae, bf) = (_mm256_add_ps(a, e), _mm256_add_ps(b, f));
    let (cg, dh) = (_mm256_add_ps(c, g), _mm256_add_ps(d, h));
    let eight = _mm256_add_ps(_mm256_add_ps(ae, cg), _mm256_add_ps(bf, dh));
    let four = _mm_add_ps(
        _mm256_castps256_ps128(eight),
        _mm256_extractf128_ps::<1>(eight),
    );
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// Σ q · r in f64 for each row.
#[target_feature(enable = "avx2,fma,f16c")]
fn products<T: Row>(query: &[f32], rows: &[T], sums: &mut Sums) {
    for (row, sum) in rows.chunks_exact(query.len()).zip(sums) {
        *sum = wide::<T, false>(query, row);
    }
}

/// The same, and Σ r².
#[target_feature(enable = "avx2,fma,f16c")]
fn products_and_norms<T: Row>(query: &[f32], rows: &[T], sums: &mut Sums, norms: &mut Sums) {
    let rows = rows.chunks_exact(query.len());
    for ((row, sum), norm) in rows.zip(sums).zip(norms) {
        *sum = wide::<T, false>(query, row);
        *norm = wide::<T, true>(query, row);
    }
}

/// Σ q · r, or Σ r². A product of f32 is exact in f64: 48 bits, and exponents from −298 to 256; so the fused addition rounds as
/// the separate one does.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn wide<T: Row, const SQUARES: bool>(query: &[f32], row: &[T]) -> f64 {
    let mut halves = [[_mm256_setzero_pd(); 8]; 2];
    // Lanes 0 to 31, then the others: sixteen vectors of sums would not fit the registers.
    for (half, sums) in halves.iter_mut().enumerate() {
        let mut lanes = [_mm256_set1_pd(-0.0); 8];
        for at in (32 * half..row.len()).step_by(LANES) {
            let left = (row.len() - at).min(32);
            for part in 0..left.div_ceil(8) {
                let (from, to) = (at + 8 * part, at + left.min(8 * part + 8));
                let x = load(&row[from..to]);
                let q = if SQUARES { x } else { load(&query[from..to]) };
                let low = _mm256_fmadd_pd(
                    _mm256_cvtps_pd(_mm256_castps256_ps128(q)),
                    _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                    lanes[2 * part],
                );
                let high = _mm256_fmadd_pd(
                    _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(q)),
                    _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)),
                    lanes[2 * part + 1],
                );
                if to - from == 8 {
                    (lanes[2 * part], lanes[2 * part + 1]) = (low, high);
                } else {
                    let present = first(to - from);
                    let below = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(present));
                    let above = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(present));
                    let (below, above) = (_mm256_castsi256_pd(below), _mm256_castsi256_pd(above));
                    lanes[2 * part] = _mm256_blendv_pd(lanes[2 * part], low, below);
                    lanes[2 * part + 1] = _mm256_blendv_pd(lanes[2 * part + 1], high, above);
                }
            }
        }
        *sums = lanes;
    }
    let [low, high] = halves;
    let mut lanes = [_mm256_setzero_pd(); 8];
    for (lane, (low, high)) in lanes.iter_mut().zip(low.into_iter().zip(high)) {
        *lane = _mm256_add_pd(low, high);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let (ae, bf) = (_mm256_add_pd(a, e), _mm256_add_pd(b, f));
    let (cg, dh) = (_mm256_add_pd(c, g), _mm256_add_pd(d, h));
    let four = _mm256_add_pd(_mm256_add_pd(ae, cg), _mm256_add_pd(bf, dh));
    let two = _mm_add_pd(
        _mm256_castpd256_pd128(four),
        _mm256_extractf128_pd::<1>(four),
    );
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}
