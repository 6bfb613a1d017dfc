//! The functions on a ternary block's values, with loops over a set's vectors; contracts as in the table.

use super::Cut;
use super::lanes::Lanes;

/// Returns the largest pattern of a magnitude.
#[inline(always)]
pub(in crate::simd) fn largest<V: Lanes>(set: V, values: &[f32]) -> u32 {
    let mut largest = [set.splat(0); 4];
    for step in values.chunks_exact(4 * set.lanes()) {
        // This is the first read of a block.
        for line in step.chunks_exact(16) {
            set.ask(line);
        }
        for (largest, x) in largest.iter_mut().zip(step.chunks_exact(set.lanes())) {
            *largest = set.max(*largest, magnitude(set, x));
        }
    }
    let [a, b, c, d] = largest;
    set.top(set.max(set.max(a, b), set.max(c, d)))
        .cast_unsigned()
}

/// Returns Σ|x| in f64.
#[inline(always)]
pub(in crate::simd) fn sum<V: Lanes>(set: V, values: &[f32]) -> f64 {
    let mut sums = [[set.splat_f64(0.0); 2]; 2];
    for pair in values.chunks_exact(2 * set.lanes()) {
        for (sums, x) in sums.iter_mut().zip(pair.chunks_exact(set.lanes())) {
            *sums = set.add_magnitudes(*sums, set.read(x));
        }
    }
    total(set, sums)
}

/// Returns Σ|x| of the values that a cut encodes, and their number.
#[inline(always)]
pub(in crate::simd) fn coded<V: Lanes>(set: V, values: &[f32], cut: Cut) -> (f64, u32) {
    let [factor, least] = [cut.factor, cut.least].map(|x| set.pattern(x.to_bits()));
    let mut sums = [[set.splat_f64(0.0); 2]; 2];
    let mut count = set.none();
    for pair in values.chunks_exact(2 * set.lanes()) {
        for (sums, x) in sums.iter_mut().zip(pair.chunks_exact(set.lanes())) {
            let x = magnitude(set, x);
            let is_coded = set.reaches_f32(set.multiply_f32(x, factor), least);
            count = set.count(count, is_coded);
            *sums = set.add_magnitudes(*sums, set.keep(is_coded, x));
        }
    }
    (total(set, sums), set.counted(count))
}

/// Returns Σ|x| in f32 and the number of |x| ≥ a bound, for two bounds.
#[inline(always)]
pub(in crate::simd) fn tails<V: Lanes>(
    set: V,
    values: &[f32],
    bounds: [f32; 2],
) -> [(f32, u32); 2] {
    let bounds = bounds.map(|bound| set.pattern(bound.to_bits()));
    let mut sums = [[set.splat(0); 2]; 2];
    let mut counts = [set.none(); 2];
    for pair in values.chunks_exact(2 * set.lanes()) {
        for (part, x) in pair.chunks_exact(set.lanes()).enumerate() {
            let x = magnitude(set, x);
            for ((sums, count), &bound) in sums.iter_mut().zip(&mut counts).zip(&bounds) {
                let reaches = set.reaches_f32(x, bound);
                sums[part] = set.add_kept_f32(sums[part], reaches, x);
                *count = set.count(*count, reaches);
            }
        }
    }
    let total = |[a, b]: [V::Words; 2]| set.sum_f32(set.add_f32(a, b));
    [
        (total(sums[0]), set.counted(counts[0])),
        (total(sums[1]), set.counted(counts[1])),
    ]
}

/// Appends the |x| in low..high.
#[inline(always)]
pub(in crate::simd) fn between<V: Lanes>(
    set: V,
    values: &[f32],
    bounds: [f32; 2],
    out: &mut [f32],
) -> usize {
    let [low, high] = bounds.map(|bound| set.pattern(bound.to_bits()));
    let mut len = 0;
    for values in values.chunks_exact(set.lanes()) {
        let x = magnitude(set, values);
        // Both are magnitudes of numbers, whose patterns have the same order.
        let found = set.both(set.reaches_f32(x, low), set.exceeds(high, x));
        if set.bits(found) == 0 {
            continue;
        }
        if let Some(out) = out.get_mut(len..) {
            len += set.append(found, values, out);
        }
    }
    len
}

/// Returns the magnitudes of a vector's values.
#[inline(always)]
fn magnitude<V: Lanes>(set: V, x: &[f32]) -> V::Words {
    set.and(set.read(x), set.splat(i32::MAX))
}

/// Returns the sum of all lanes in ones. The lanes are sums of |x| · 2⁻⁸⁹⁶, the form of widened magnitudes (see
/// [`crate::simd::exact`]). A block's largest magnitude is at least 2⁻¹⁰⁰, so a sum that contains it is normal there;
/// subnormal lanes are multiples of 2⁻¹⁰⁴⁵, and add exactly.
#[inline(always)]
fn total<V: Lanes>(set: V, [[a, b], [c, d]]: [[V::Doubles; 2]; 2]) -> f64 {
    /// 2⁴⁴⁸.
    const HALF: f64 = f64::from_bits((1023 + 448) << 52);
    let sum = set.sum_f64(set.add_f64(set.add_f64(a, b), set.add_f64(c, d)));
    sum * HALF * HALF
}

/// Defines the functions of a set, compiled for its features.
macro_rules! values {
    ($set:ty, $features:literal) => {{
        use $crate::simd::blocks::{Cut, Values, values};

        #[target_feature(enable = $features)]
        fn largest(values: &[f32]) -> u32 {
            values::largest(<$set>::here(), values)
        }
        #[target_feature(enable = $features)]
        fn sum(values: &[f32]) -> f64 {
            values::sum(<$set>::here(), values)
        }
        #[target_feature(enable = $features)]
        fn coded(values: &[f32], cut: Cut) -> (f64, u32) {
            values::coded(<$set>::here(), values, cut)
        }
        #[target_feature(enable = $features)]
        fn tails(values: &[f32], bounds: [f32; 2]) -> [(f32, u32); 2] {
            values::tails(<$set>::here(), values, bounds)
        }
        #[target_feature(enable = $features)]
        fn between(values: &[f32], bounds: [f32; 2], out: &mut [f32]) -> usize {
            values::between(<$set>::here(), values, bounds, out)
        }
        Values {
            largest,
            sum,
            coded,
            tails,
            between,
        }
    }};
}
pub(in crate::simd) use values as kernels;
