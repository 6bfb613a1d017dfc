//! What is asked of a ternary block's values, 16 at a time; contracts as in the table.

use std::arch::x86_64::*;

use super::load;
use crate::simd::Ahead;
use crate::simd::blocks::Cut;

/// The largest pattern of a magnitude.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn largest(values: &[f32]) -> u32 {
    let mut largest = [_mm512_setzero_si512(); 2];
    let magnitude = _mm512_set1_epi32(i32::MAX);
    for pair in values.as_chunks::<32>().0 {
        // The first look at a block.
        Ahead::STREAM.ask(pair.as_ptr());
        Ahead::STREAM.ask(pair[16..].as_ptr());
        for (largest, x) in largest.iter_mut().zip(pair.as_chunks::<16>().0) {
            let x = _mm512_and_si512(_mm512_castps_si512(load(x)), magnitude);
            *largest = _mm512_max_epi32(*largest, x);
        }
    }
    _mm512_reduce_max_epi32(_mm512_max_epi32(largest[0], largest[1])) as u32
}

/// Σ|x| in f64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn sum(values: &[f32]) -> f64 {
    let mut sums = [_mm512_setzero_pd(); 4];
    for pair in values.as_chunks::<32>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            *sums = add(*sums, _mm512_abs_ps(load(x)));
        }
    }
    total(sums)
}

/// Σ|x| of what a cut codes, and how many.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(in crate::simd) fn coded(values: &[f32], cut: Cut) -> (f64, u32) {
    let (factor, least) = (_mm512_set1_ps(cut.factor), _mm512_set1_ps(cut.least));
    let mut sums = [_mm512_setzero_pd(); 4];
    let mut count = 0;
    for pair in values.as_chunks::<32>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            let x = _mm512_abs_ps(load(x));
            let kept = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(_mm512_mul_ps(x, factor), least);
            count += kept.count_ones();
            *sums = add(*sums, _mm512_maskz_mov_ps(kept, x));
        }
    }
    (total(sums), count)
}

/// Σ|x| in f32 and the number of |x| ≥ a bound, for two bounds.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(in crate::simd) fn tails(values: &[f32], bounds: [f32; 2]) -> [(f32, u32); 2] {
    let [low, high] = bounds.map(|bound| _mm512_set1_ps(bound));
    let mut sums = [_mm512_setzero_ps(); 4];
    let mut counts = [0; 2];
    for pair in values.as_chunks::<32>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            let x = _mm512_abs_ps(load(x));
            let low = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, low);
            let high = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, high);
            sums[0] = _mm512_mask_add_ps(sums[0], low, sums[0], x);
            sums[1] = _mm512_mask_add_ps(sums[1], high, sums[1], x);
            counts[0] += low.count_ones();
            counts[1] += high.count_ones();
        }
    }
    let [a, b, c, d] = sums;
    [
        (_mm512_reduce_add_ps(_mm512_add_ps(a, c)), counts[0]),
        (_mm512_reduce_add_ps(_mm512_add_ps(b, d)), counts[1]),
    ]
}

/// Appends the |x| in low..high.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(in crate::simd) fn between(values: &[f32], bounds: [f32; 2], out: &mut [f32]) -> usize {
    let [low, high] = bounds.map(|bound| _mm512_set1_ps(bound));
    let mut len = 0;
    for x in values.as_chunks::<16>().0 {
        let x = _mm512_abs_ps(load(x));
        let found = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(x, low);
        let found = _mm512_mask_cmp_ps_mask::<_CMP_LT_OQ>(found, x, high);
        let Some(out) = out[len..].first_chunk_mut() else {
            return len;
        };
        super::store(out, _mm512_maskz_compress_ps(found, x));
        len += found.count_ones() as usize;
    }
    len
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn add(sums: [__m512d; 2], x: __m512) -> [__m512d; 2] {
    [
        _mm512_add_pd(sums[0], _mm512_cvtps_pd(_mm512_castps512_ps256(x))),
        _mm512_add_pd(sums[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(x))),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn total([a, b, c, d]: [__m512d; 4]) -> f64 {
    _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(a, b), _mm512_add_pd(c, d)))
}
