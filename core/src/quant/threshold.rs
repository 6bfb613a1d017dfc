//! The smallest magnitude that a closed-form rule maps to ±1, as a bit pattern.
//!
//! Each rule is a monotone predicate on |x|: multiplication by a positive float constant and comparison never fall
//! as |x| grows. So one pattern T splits the magnitudes, and the integer comparison `bits(|x|) >= T` decides every
//! value.

use crate::number::bits::{INFINITE, magnitude};

/// The threshold that maps every value to 0.
pub(super) const NONE: u32 = u32::MAX;

/// [`super::Rule::AbsMax`]: the first |x| with `fl(|x| · fl(1/max)) >= 0.5`.
///
/// If `1/max` overflows (max below 2⁻¹²⁸), the first with `2|x| >= max`, exactly.
pub(super) fn abs_max(max: f32) -> u32 {
    let pattern = magnitude(max);
    if pattern == 0 {
        return NONE;
    }
    let inverse = 1.0 / max;
    if inverse.is_infinite() {
        // Both sides are subnormal, and a subnormal's pattern is its value as an integer.
        return pattern.div_ceil(2);
    }
    first(magnitude(max * 0.5), |x| x * inverse >= 0.5)
}

/// [`super::Rule::AbsMean`]: the first |x| with `half_even(fl(|x| · fl(1/mean))) >= 1`, that is, a product above 0.5.
///
/// If `1/mean` overflows (mean below 2⁻¹²⁸), the first with `2|x| > mean`, exactly. A mean that rounds to 0 gives no
/// scale, so nothing is coded.
pub(super) fn abs_mean(mean: f32) -> u32 {
    let pattern = magnitude(mean);
    if pattern == 0 {
        return NONE;
    }
    let inverse = 1.0 / mean;
    if inverse.is_infinite() {
        return pattern / 2 + 1;
    }
    first(magnitude(mean * 0.5), |x| x * inverse > 0.5)
}

/// [`super::Rule::Twn`]: the first |x| above `fl(0.7 · mean)`.
pub(super) fn twn(mean: f32) -> u32 {
    magnitude(0.7 * mean) + 1
}

/// Returns the first pattern of a finite magnitude that `coded` accepts; infinity's pattern if there is none.
///
/// `coded` must never change from true to false as its argument grows. `estimate` only saves steps: the function
/// looks within 4 patterns of it, and bisects the whole range if the answer is not there.
fn first(estimate: u32, coded: impl Fn(f32) -> bool) -> u32 {
    let accepts = |pattern: u32| pattern >= INFINITE || coded(f32::from_bits(pattern));
    // The answer lies in (low, high]: `low` is refused (or before the first pattern), `high` is accepted.
    let (mut low, mut high) = (estimate.saturating_sub(4), estimate.saturating_add(4));
    if accepts(low) {
        if low == 0 {
            return 0;
        }
        low = 0;
    }
    if !accepts(high) {
        high = INFINITE;
    }
    if accepts(low) {
        return low;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if accepts(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{Random, round};

    fn walk(mut pattern: u32, coded: impl Fn(f32) -> bool) -> u32 {
        while pattern > 0 && coded(f32::from_bits(pattern - 1)) {
            pattern -= 1;
        }
        while pattern < INFINITE && !coded(f32::from_bits(pattern)) {
            pattern += 1;
        }
        pattern
    }

    /// Finite positive floats: every exponent, the extremes, and random mantissas.
    fn scales() -> impl Iterator<Item = f32> {
        let mut random = Random::new(7);
        let edges = (0..255u32).flat_map(|e| [e << 23, (e << 23) | 1, (e << 23) | 0x7F_FFFF]);
        let drawn = (0..20_000).map(move |_| (random.below(u64::from(INFINITE))) as u32);
        edges
            .chain(drawn)
            .filter(|&pattern| pattern > 0)
            .map(f32::from_bits)
    }

    #[test]
    fn thresholds_split_where_the_rules_do() {
        for scale in scales() {
            let inverse = 1.0 / scale;
            if inverse.is_infinite() {
                let (unit, whole) = (f64::from(f32::from_bits(1)), f64::from(scale));
                let at = |pattern: u32| 2.0 * f64::from(pattern) * unit;
                let (max, mean) = (abs_max(scale), abs_mean(scale));
                assert!(at(max) >= whole && at(max - 1) < whole);
                assert!(at(mean) > whole && at(mean - 1) <= whole);
                continue;
            }
            let estimate = magnitude(scale * 0.5);
            let max = walk(estimate, |x| round::half_away(x * inverse) >= 1.0);
            assert_eq!(abs_max(scale), max, "{scale:e}");
            let mean = walk(estimate, |x| round::half_even(x * inverse) >= 1.0);
            assert_eq!(abs_mean(scale), mean, "{scale:e}");
        }
    }

    #[test]
    fn search_finds_the_first_from_any_estimate() {
        for wanted in [0, 1, 5, 0x3F80_0000, INFINITE - 1, INFINITE] {
            let coded = |x: f32| magnitude(x) >= wanted;
            for estimate in [
                0,
                3,
                4,
                5,
                0x3F7F_FFFD,
                0x3F80_0004,
                INFINITE - 1,
                INFINITE,
                u32::MAX,
            ] {
                assert_eq!(first(estimate, coded), wanted, "from {estimate:#x}");
            }
        }
    }
}
