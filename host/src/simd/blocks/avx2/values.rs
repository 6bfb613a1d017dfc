//! What is asked of a ternary block's values, 8 at a time; contracts as in the table.

use std::arch::x86_64::*;

use super::{absolute, load};
use crate::simd::Ahead;
use crate::simd::blocks::Cut;

/// The largest pattern of a magnitude.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn largest(values: &[f32]) -> u32 {
    let mut largest = [_mm256_setzero_si256(); 4];
    for values in values.as_chunks::<32>().0 {
        // The first look at a block.
        Ahead::STREAM.ask(values.as_ptr());
        Ahead::STREAM.ask(values[16..].as_ptr());
        for (largest, x) in largest.iter_mut().zip(values.as_chunks::<8>().0) {
            *largest = _mm256_max_epi32(*largest, _mm256_castps_si256(absolute(load(x))));
        }
    }
    let [a, b, c, d] = largest;
    let max = _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d));
    let max = _mm_max_epi32(
        _mm256_castsi256_si128(max),
        _mm256_extracti128_si256::<1>(max),
    );
    let max = _mm_max_epi32(max, _mm_unpackhi_epi64(max, max));
    _mm_cvtsi128_si32(_mm_max_epi32(max, _mm_shuffle_epi32::<1>(max))) as u32
}

/// Σ|x| in f64.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn sum(values: &[f32]) -> f64 {
    let mut sums = [_mm256_setzero_pd(); 4];
    for pair in values.as_chunks::<16>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            *sums = add(*sums, absolute(load(x)));
        }
    }
    total(sums)
}

/// Σ|x| of what a cut codes, and how many.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::simd) fn coded(values: &[f32], cut: Cut) -> (f64, u32) {
    let (factor, least) = (_mm256_set1_ps(cut.factor), _mm256_set1_ps(cut.least));
    let mut sums = [_mm256_setzero_pd(); 4];
    let mut count = 0;
    for pair in values.as_chunks::<16>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            let x = absolute(load(x));
            let kept = _mm256_cmp_ps::<_CMP_GE_OQ>(_mm256_mul_ps(x, factor), least);
            count += _mm256_movemask_ps(kept).count_ones();
            *sums = add(*sums, _mm256_and_ps(kept, x));
        }
    }
    (total(sums), count)
}

/// Σ|x| in f32 and the number of |x| ≥ a bound, for two bounds.
#[target_feature(enable = "avx2,popcnt")]
pub(in crate::simd) fn tails(values: &[f32], bounds: [f32; 2]) -> [(f32, u32); 2] {
    let bounds = bounds.map(|bound| _mm256_set1_ps(bound));
    let mut sums = [[_mm256_setzero_ps(); 2]; 2];
    let mut counts = [0; 2];
    for pair in values.as_chunks::<16>().0 {
        for (part, x) in pair.as_chunks().0.iter().enumerate() {
            let x = absolute(load(x));
            for ((sums, count), &bound) in sums.iter_mut().zip(&mut counts).zip(&bounds) {
                let kept = _mm256_cmp_ps::<_CMP_GE_OQ>(x, bound);
                sums[part] = _mm256_add_ps(sums[part], _mm256_and_ps(kept, x));
                *count += _mm256_movemask_ps(kept).count_ones();
            }
        }
    }
    let total = |[a, b]: [__m256; 2]| {
        let sum = _mm256_add_ps(a, b);
        let sum = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
        let sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
        _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)))
    };
    [(total(sums[0]), counts[0]), (total(sums[1]), counts[1])]
}

/// Appends the |x| in low..high.
#[target_feature(enable = "avx2,bmi1")]
pub(in crate::simd) fn between(values: &[f32], bounds: [f32; 2], out: &mut [f32]) -> usize {
    let [low, high] = bounds.map(|bound| _mm256_set1_ps(bound));
    let mut len = 0;
    for values in values.as_chunks::<8>().0 {
        let x = absolute(load(values));
        let found = _mm256_and_ps(
            _mm256_cmp_ps::<_CMP_GE_OQ>(x, low),
            _mm256_cmp_ps::<_CMP_LT_OQ>(x, high),
        );
        let mut found = _mm256_movemask_ps(found);
        while found != 0 {
            if let Some(out) = out.get_mut(len) {
                *out = values[found.trailing_zeros() as usize % 8].abs();
                len += 1;
            }
            found &= found - 1;
        }
    }
    len
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(sums: [__m256d; 2], x: __m256) -> [__m256d; 2] {
    [
        _mm256_add_pd(sums[0], _mm256_cvtps_pd(_mm256_castps256_ps128(x))),
        _mm256_add_pd(sums[1], _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x))),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn total([a, b, c, d]: [__m256d; 4]) -> f64 {
    let sum = _mm256_add_pd(_mm256_add_pd(a, b), _mm256_add_pd(c, d));
    let sum = _mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd::<1>(sum));
    _mm_cvtsd_f64(_mm_add_sd(sum, _mm_unpackhi_pd(sum, sum)))
}
