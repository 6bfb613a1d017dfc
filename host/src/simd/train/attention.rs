//! The products of attention's gradient: those of attention, and sums over a group's rows in pairs.

use tercet_core::model::attention::{HeadProducts, PlainProducts};
use tercet_core::model::{CacheType, PageCodes};
use tercet_core::train::GROUP;

use super::weights::{CodeProducts, OUTPUTS, STRIP, VECTORS, sums_of};
use crate::simd::model::avx2::Products;

/// Pairs of a group's rows.
const PAIRS: usize = GROUP / 2;
/// Columns of the longest vectors.
const WIDEST: usize = 16 * VECTORS;

/// Products of attention, and a set's products of pairs.
#[derive(Clone, Copy)]
pub(super) struct GradientProducts<P> {
    pub(super) heads: Products,
    pub(super) pairs: P,
}

impl<P: CodeProducts> HeadProducts for GradientProducts<P> {
    #[inline(always)]
    fn scores(
        self,
        kind: CacheType,
        query: (&[i16], f32),
        keys: (PageCodes<'_>, &[f32], usize),
        scores: &mut [f32],
    ) {
        self.heads.scores(kind, query, keys, scores);
    }

    #[inline(always)]
    fn largest(self, scores: &[f32]) -> (f32, bool) {
        self.heads.largest(scores)
    }

    #[inline(always)]
    fn weights(
        self,
        largest: f32,
        scores: &mut [f32],
        scales: &[f32],
        weigh: &impl Fn(u32, f32) -> f32,
    ) -> (u64, f32) {
        self.heads.weights(largest, scores, scales, weigh)
    }

    #[inline(always)]
    fn codes(self, weights: &[f32], exponent: i32, codes: &mut [i32; 64]) {
        self.heads.codes(weights, exponent, codes);
    }

    #[inline(always)]
    fn values(
        self,
        kind: CacheType,
        weights: &[i32; 64],
        values: PageCodes<'_>,
        shift: u32,
        sums: &mut [i64],
    ) {
        self.heads.values(kind, weights, values, shift, sums);
    }

    #[inline(always)]
    fn outer<V: Copy + Into<i32>>(
        self,
        (weights, stride): (&[f32], usize),
        (values, apart): (&[V], usize),
        (sums, len): (&mut [i32], usize),
    ) {
        let count = weights.len().checked_div(stride).unwrap_or(0);
        let positions = sums.len().checked_div(len).unwrap_or(0);
        if count > GROUP || positions == 0 || positions > stride {
            return PlainProducts.outer((weights, stride), (values, apart), (sums, len));
        }
        let wide = P::COLUMNS * VECTORS;
        let (mut inputs, mut lanes) = ([0; PAIRS * WIDEST], [[0; STRIP]; PAIRS]);
        for column in (0..len).step_by(wide) {
            let width = wide.min(len - column);
            for (pair, to) in inputs.chunks_exact_mut(wide).enumerate() {
                let of = |index: usize| match index < count {
                    true => &values[index * apart + column..][..width],
                    false => &[],
                };
                let (one, other) = (of(2 * pair), of(2 * pair + 1));
                pairs(to, one, other, |value| value.into());
            }
            for first in (0..positions).step_by(STRIP) {
                let outputs = STRIP.min(positions - first);
                for (to, weights) in lanes.iter_mut().zip(weights.chunks(2 * stride)) {
                    let (one, other) = weights.split_at(stride);
                    let one = &one[first..][..outputs];
                    let other = other.get(first..first + outputs).unwrap_or_default();
                    // Whole numbers of 16 bits, which end the sum's pattern.
                    pairs(to, one, other, |weight| {
                        (weight + 12_582_912.0).to_bits() as i32
                    });
                }
                let lanes = &lanes[..count.div_ceil(2)];
                let inputs = &inputs[..lanes.len() * wide];
                for few in (0..outputs).step_by(OUTPUTS) {
                    let found = sums_of(self.pairs, lanes, inputs, few, &[0; STRIP]);
                    for (position, found) in (first + few..first + outputs).zip(found) {
                        let to = &mut sums[position * len..][..len][column..];
                        for (to, found) in to.chunks_mut(P::COLUMNS).zip(found) {
                            if to.len() == P::COLUMNS {
                                self.pairs.store(found, to);
                                continue;
                            }
                            let mut own = [0; 16];
                            self.pairs.store(found, &mut own);
                            to.copy_from_slice(&own[..to.len()]);
                        }
                    }
                }
            }
        }
    }
}

/// Writes pairs of two rows' elements; nothing follows the last row of an odd number.
#[inline(always)]
fn pairs<V: Copy>(to: &mut [i32], one: &[V], other: &[V], code: impl Fn(V) -> i32) {
    if other.is_empty() {
        for (to, &one) in to.iter_mut().zip(one) {
            *to = code(one) & 0xFFFF;
        }
    }
    for ((to, &one), &other) in to.iter_mut().zip(one).zip(other) {
        *to = code(one) & 0xFFFF | code(other) << 16;
    }
}

#[cfg(test)]
mod tests {
    use tercet_core::number::Random;

    use super::super::{avx2, avx512};
    use super::*;

    /// Compares the sums of both products, of groups and heads of any length.
    #[inline(always)]
    fn check<P: CodeProducts>(products: &GradientProducts<P>) {
        let mut random = Random::new(3);
        for (count, positions, stride, len) in [
            (1, 1, 1, 1),
            (64, 64, 64, 64),
            (63, 127, 128, 20),
            (2, 70, 192, 48),
            (37, 17, 64, 8),
            (64, 5, 64, 130),
        ] {
            for most in [127, 5] {
                let mut draw = |most: i32| random.below(2 * most as u64 + 1) as i32 - most;
                let weights = (0..count * stride).map(|_| draw(most) as f32);
                let weights: Vec<f32> = weights.collect();
                let apart = len + 3;
                let values: Vec<i16> = (0..count * apart).map(|_| draw(32_512) as i16).collect();
                let (mut found, mut expected) =
                    (vec![1; positions * len], vec![2; positions * len]);
                products.outer((&weights, stride), (&values, apart), (&mut found, len));
                PlainProducts.outer((&weights, stride), (&values, apart), (&mut expected, len));
                assert_eq!(found, expected, "{count}, {positions}, {stride}, {len}");
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn check_avx2() {
        check(&GradientProducts {
            heads: Products::here(),
            pairs: avx2::Products::here(),
        });
    }

    #[target_feature(enable = "avx2,fma,avx512f,avx512bw")]
    fn check_avx512() {
        check(&GradientProducts {
            heads: Products::here(),
            pairs: avx512::Pairs::here(),
        });
    }

    #[test]
    fn sums_of_groups_are_those_of_plain_loops() {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the set runs here.
            unsafe { check_avx2() };
        }
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: as above; all of these have AVX2.
            unsafe { check_avx512() };
        }
    }
}
