//! AdamW with a state of 4.2 bytes per weight: weights of 16 bits, moments of 8, in blocks.

use super::optimizer::{AdamW, Update};
use super::power::{largest, least_exponent, two_to};
use crate::number::bits::INFINITE;
use crate::number::round::half_even_small;

/// Number of weights per block, of which the last one of a tensor may have fewer.
pub const LEAN_BLOCK: usize = 64;
/// Largest magnitude of a weight's code.
const MOST: u32 = i16::MAX as u32;
/// The exponent of a block with a weight that is not finite. Its codes are those of infinity.
const NOT_FINITE: i8 = i8::MAX;
/// Smallest exponent of a block of weights.
const FLOOR: i32 = -100;
/// Largest step in units of the learning rate. A second moment that was rounded to 0 would make it as long as 1 / ε.
const LONGEST: f32 = 4.0;

/// The state of at most [`LEAN_BLOCK`] weights; all slices have one element per weight.
///
/// - A weight is code · 2ᵉ, with one exponent: the least with max |w| ≤ 32,767 · 2ᵉ, but at least −100.
/// - A first moment is fl(code · scale), with the scale fl(max |m| / 127).
/// - A second moment is fl(scale · fl(t² · t²)), with t = fl(code · fl(1 / 255)) and the scale max v: small ones keep
///   their order of magnitude down to 2·10⁻¹⁰ of the largest.
#[derive(Debug)]
pub struct LeanBlock<'b> {
    /// Weights.
    pub weights: &'b mut [i16],
    /// The exponent of the weights.
    pub exponent: &'b mut i8,
    /// First moments.
    pub first: &'b mut [i8],
    /// Second moments.
    pub second: LeanSecond<'b>,
    /// Scales of the first and of the second moments.
    pub scales: &'b mut [f32; 2],
}

/// The second moments of a [`LeanBlock`].
#[derive(Debug)]
pub enum LeanSecond<'b> {
    /// Codes, which are updated.
    Codes(&'b mut [u8]),
    /// Those of the new step, as [`factored`](super::factored()) computes them. Their scale is not used.
    New(&'b [f32]),
}

/// Computes the codes of a block's first weights, rounded half to even, and returns their exponent. Both slices have the
/// same length. O(n).
///
/// ```
/// use tercet_core::train::{lean_codes, lean_weights};
///
/// let (mut codes, mut weights) = ([0; 3], [0.0; 3]);
/// let exponent = lean_codes(&[0.5, -0.25, 0.0], &mut codes);
/// assert_eq!((exponent, codes), (-15, [16384, -8192, 0]));
/// lean_weights(&codes, exponent, &mut weights);
/// assert_eq!(weights, [0.5, -0.25, 0.0]);
/// ```
pub fn lean_codes(weights: &[f32], codes: &mut [i16]) -> i8 {
    let Some((exponent, factor)) = shared_exponent(weights) else {
        codes.fill(i16::MAX);
        return NOT_FINITE;
    };
    for (code, &weight) in codes.iter_mut().zip(weights) {
        *code = half_even_small(weight * factor) as i16;
    }
    exponent
}

/// Computes weights from their codes; the inverse of [`lean_codes`]. Infinite if one of the block was not finite. O(n).
pub fn lean_weights(codes: &[i16], exponent: i8, weights: &mut [f32]) {
    let factor = two_to(exponent.into());
    for (weight, &code) in weights.iter_mut().zip(codes) {
        *weight = f32::from(code) * factor;
    }
}

/// Returns the exponent of a block's weights, and 2 to the power of its negative; `None` if one is not finite.
#[inline(always)]
fn shared_exponent(weights: &[f32]) -> Option<(i8, f32)> {
    let most = largest(weights);
    if most >= INFINITE {
        return None;
    }
    let exponent = least_exponent(most, MOST, FLOOR);
    Some((exponent as i8, two_to(-exponent)))
}

/// Rounds to one of the two integers next to `x`, to the upper one with the probability of its distance from the lower
/// one. `draw` decides: its upper 24 bits are a number from 0 to 1. |x| is below 2²³.
#[inline(always)]
fn stochastic(x: f32, draw: u32) -> i32 {
    let toward_zero = x as i32;
    let lower = toward_zero - i32::from(toward_zero as f32 > x);
    let above = x - lower as f32;
    let chance = (draw >> 8) as f32 * (1.0 / (1 << 24) as f32);
    lower + i32::from(chance < above)
}

impl AdamW {
    /// Like [`AdamW::update`], for weights of a [`LeanBlock`]: the same operations on their values as f32, but the step
    /// (m / …) / (√… + ε) is limited to ±4. The new weights, first moments, and fl(255 · ⁴√fl(v / max v)) for the
    /// second are then rounded to codes stochastically: by words 0, 1 and 2 of `draws` for the n-th weight, each with
    /// its upper 24 bits. Updates below one step of a code are so kept on average. O(n).
    #[inline(always)]
    pub fn update_lean(
        &self,
        root: impl Fn(f32) -> f32,
        update: &Update,
        (sums, unit): (&[i64], f32),
        decays: bool,
        block: LeanBlock<'_>,
        draws: impl Fn(usize) -> [u32; 4],
    ) {
        let count = sums.len().min(LEAN_BLOCK);
        let (mut weights, mut first, mut second) =
            ([0.0; LEAN_BLOCK], [0.0; LEAN_BLOCK], [0.0; LEAN_BLOCK]);
        lean_weights(block.weights, *block.exponent, &mut weights);
        let [first_scale, second_scale] = *block.scales;
        for (m, &code) in first.iter_mut().zip(&*block.first) {
            *m = f32::from(code) * first_scale;
        }
        let mut adamw = *self;
        match &block.second {
            LeanSecond::Codes(codes) => {
                for (v, &code) in second.iter_mut().zip(&**codes) {
                    let t = f32::from(code) * (1.0 / 255.0);
                    let square = t * t;
                    *v = second_scale * (square * square);
                }
            }
            LeanSecond::New(moments) => {
                for (v, &moment) in second.iter_mut().zip(*moments) {
                    *v = moment;
                }
                // They stay as they are.
                adamw.beta2 = 1.0;
            }
        }
        let (Some(weights), Some(first), Some(second)) = (
            weights.get_mut(..count),
            first.get_mut(..count),
            second.get_mut(..count),
        ) else {
            return;
        };
        let moments = (&mut *first, &mut *second);
        adamw.advance(
            &root,
            update,
            (sums, unit),
            (decays, LONGEST),
            weights,
            moments,
        );
        let mut drawn = [[0; 4]; LEAN_BLOCK];
        for (index, drawn) in drawn.iter_mut().enumerate().take(count) {
            *drawn = draws(index);
        }
        let drawn = drawn.iter();
        match shared_exponent(weights) {
            Some((exponent, factor)) => {
                let codes = block.weights.iter_mut().zip(&*weights);
                for ((code, &weight), &[draw, ..]) in codes.zip(drawn.clone()) {
                    *code = stochastic(weight * factor, draw) as i16;
                }
                *block.exponent = exponent;
            }
            None => *block.exponent = lean_codes(weights, block.weights),
        }
        let first_scale = f32::from_bits(largest(first)) / 127.0;
        let inverse = 1.0 / first_scale;
        let inverse = if inverse.is_finite() { inverse } else { 0.0 };
        let codes = block.first.iter_mut().zip(&*first);
        for ((code, &m), &[_, draw, ..]) in codes.zip(drawn.clone()) {
            *code = stochastic((m * inverse).clamp(-127.0, 127.0), draw) as i8;
        }
        let second_scale = f32::from_bits(largest(second));
        if let LeanSecond::Codes(codes) = block.second {
            let codes = codes.iter_mut().zip(&*second);
            for ((code, &v), &[_, _, draw, _]) in codes.zip(drawn) {
                // 0 / 0 is not a number, and becomes 0.
                let share = root(root(v / second_scale));
                *code = stochastic(255.0 * share, draw) as u8;
            }
        }
        *block.scales = [first_scale, second_scale];
    }
}
