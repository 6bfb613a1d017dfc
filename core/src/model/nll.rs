//! The cost of a token: the negative logarithm of its probability, as an integer.

use super::gate::steps;
use crate::number::round::half_even_f64;
use crate::number::{exp2_neg, log2};

/// Units of [`nll`] per nat.
pub const NLL_UNIT: i64 = 1 << 32;

/// Returns the negative natural logarithm of a token's probability under softmax of `logits`, in units of 2⁻³²;
/// `None` if the token does not exist or a logit is not finite.
///
/// The value is (m − s) + (log₂ Σ − 31) · ln 2 in f64, each step rounded. m is the largest logit, s the token's, and
/// Σ the exact sum of [`exp2_neg`] of the distances of all logits below m. The result is rounded half to even once,
/// so that sums of it do not depend on the order. O(n).
///
/// ```
/// use tercet_core::model::{NLL_UNIT, nll};
///
/// // One of four equal ones: ln 4.
/// let cost = nll(&[0.5; 4], 2).unwrap() as f64 / NLL_UNIT as f64;
/// assert!((cost - 4f64.ln()).abs() < 1e-9);
/// ```
pub fn nll(logits: &[f32], token: usize) -> Option<i64> {
    let &own = logits.get(token)?;
    let largest = largest(logits)?;
    // Below 2³¹ · 2³².
    let total = logits.iter().fold(0u64, |total, &logit| {
        total.wrapping_add(u64::from(exp2_neg(steps(largest - logit))))
    });
    Some(cost(own, largest, total))
}

/// Returns the largest logit, or `None` if one is not finite.
#[inline]
pub(crate) fn largest(logits: &[f32]) -> Option<f32> {
    let mut largest = f32::NEG_INFINITY;
    for &logit in logits {
        if !logit.is_finite() {
            return None;
        }
        if logit > largest {
            largest = logit;
        }
    }
    Some(largest)
}

/// Returns [`nll`] from the token's logit, the largest one and Σ.
#[inline]
pub(crate) fn cost(own: f32, largest: f32, total: u64) -> i64 {
    let below = f64::from(largest) - f64::from(own);
    let sum = below + (log2(total as f64) - 31.0) * core::f64::consts::LN_2;
    half_even_f64(sum * NLL_UNIT as f64) as i64
}
