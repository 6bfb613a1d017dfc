//! The gradient of the cross-entropy.

use crate::model::gate::steps;
use crate::number::exp2_neg;

/// Replaces the logits of a row by the gradient of −ln of the target's probability. Returns this cost in units of
/// [`NLL_UNIT`](crate::model::NLL_UNIT), like [`nll`](crate::model::nll), or `None` if the target does not exist or a
/// logit is not finite.
///
/// With m the largest logit and q in Q31 from [`exp2_neg`] for the distance of a logit below m, the gradient is
/// fl(f32(q) / f32(Σq)), minus 1 at the target. O(n).
///
/// ```
/// use tercet_core::train::loss;
///
/// let mut logits = [0.5; 4];
/// loss(&mut logits, 2);
/// assert_eq!(logits, [0.25, 0.25, -0.75, 0.25]);
/// ```
pub fn loss(logits: &mut [f32], target: usize) -> Option<i64> {
    let cost = crate::model::nll(logits, target)?;
    let largest = logits.iter().fold(
        f32::NEG_INFINITY,
        |most, &logit| if logit > most { logit } else { most },
    );
    let total = logits.iter().fold(0u64, |total, &logit| {
        total.wrapping_add(u64::from(exp2_neg(steps(largest - logit))))
    });
    let total = total as f32;
    for logit in logits.iter_mut() {
        *logit = exp2_neg(steps(largest - *logit)) as f32 / total;
    }
    if let Some(own) = logits.get_mut(target) {
        *own -= 1.0;
    }
    Some(cost)
}
