//! What is asked of a ternary block's values, 4 at a time; contracts as in the table.

use std::arch::aarch64::*;

use super::load;
use crate::simd::blocks::Cut;

/// The largest pattern of a magnitude.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn largest(values: &[f32]) -> u32 {
    let mut largest = [vdupq_n_u32(0); 4];
    for values in values.as_chunks::<16>().0 {
        for (largest, x) in largest.iter_mut().zip(values.as_chunks().0) {
            *largest = vmaxq_u32(*largest, vreinterpretq_u32_f32(vabsq_f32(load(x))));
        }
    }
    let [a, b, c, d] = largest;
    vmaxvq_u32(vmaxq_u32(vmaxq_u32(a, b), vmaxq_u32(c, d)))
}

/// Σ|x| in f64.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn sum(values: &[f32]) -> f64 {
    let mut sums = [vdupq_n_f64(0.0); 4];
    for pair in values.as_chunks::<8>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            *sums = add(*sums, vabsq_f32(load(x)));
        }
    }
    total(sums)
}

/// Σ|x| of what a cut codes, and how many.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn coded(values: &[f32], cut: Cut) -> (f64, u32) {
    let (factor, least) = (vdupq_n_f32(cut.factor), vdupq_n_f32(cut.least));
    let mut sums = [vdupq_n_f64(0.0); 4];
    let mut count = vdupq_n_u32(0);
    for pair in values.as_chunks::<8>().0 {
        for (sums, x) in sums
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(pair.as_chunks().0)
        {
            let x = vabsq_f32(load(x));
            // All ones where it holds: −1.
            let kept = vcgeq_f32(vmulq_f32(x, factor), least);
            count = vsubq_u32(count, kept);
            *sums = add(*sums, only(kept, x));
        }
    }
    (total(sums), vaddvq_u32(count))
}

/// Σ|x| in f32 and the number of |x| ≥ a bound, for two bounds.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn tails(values: &[f32], bounds: [f32; 2]) -> [(f32, u32); 2] {
    let bounds = bounds.map(|bound| vdupq_n_f32(bound));
    let mut sums = [[vdupq_n_f32(0.0); 2]; 2];
    let mut counts = [vdupq_n_u32(0); 2];
    for pair in values.as_chunks::<8>().0 {
        for (part, x) in pair.as_chunks().0.iter().enumerate() {
            let x = vabsq_f32(load(x));
            for ((sums, count), &bound) in sums.iter_mut().zip(&mut counts).zip(&bounds) {
                let kept = vcgeq_f32(x, bound);
                sums[part] = vaddq_f32(sums[part], only(kept, x));
                *count = vsubq_u32(*count, kept);
            }
        }
    }
    [0, 1].map(|i| {
        let [a, b] = sums[i];
        (vaddvq_f32(vaddq_f32(a, b)), vaddvq_u32(counts[i]))
    })
}

/// Appends the |x| in low..high.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn between(values: &[f32], [low, high]: [f32; 2], out: &mut [f32]) -> usize {
    let (least, most) = (vdupq_n_f32(low), vdupq_n_f32(high));
    let mut len = 0;
    for values in values.as_chunks::<4>().0 {
        let x = vabsq_f32(load(values));
        let found = vandq_u32(vcgeq_f32(x, least), vcltq_f32(x, most));
        if vmaxvq_u32(found) == 0 {
            continue;
        }
        for x in values.map(f32::abs) {
            if let Some(out) = out.get_mut(len).filter(|_| (low..high).contains(&x)) {
                *out = x;
                len += 1;
            }
        }
    }
    len
}

/// x where a comparison held, else 0.
#[inline]
#[target_feature(enable = "neon")]
fn only(kept: uint32x4_t, x: float32x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(vandq_u32(kept, vreinterpretq_u32_f32(x)))
}

#[inline]
#[target_feature(enable = "neon")]
fn add(sums: [float64x2_t; 2], x: float32x4_t) -> [float64x2_t; 2] {
    [
        vaddq_f64(sums[0], vcvt_f64_f32(vget_low_f32(x))),
        vaddq_f64(sums[1], vcvt_high_f64_f32(x)),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn total([a, b, c, d]: [float64x2_t; 4]) -> f64 {
    vaddvq_f64(vaddq_f64(vaddq_f64(a, b), vaddq_f64(c, d)))
}
