//! The gradient of the cross-entropy.

use crate::model::gate::steps;
use crate::model::nll;
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
    let &own = logits.get(target)?;
    let largest = nll::largest(logits)?;
    let mut total = 0u64;
    for logit in logits.iter_mut() {
        let power = exp2_neg(steps(largest - *logit));
        total = total.wrapping_add(u64::from(power));
        *logit = power as f32;
    }
    let sum = total as f32;
    for logit in logits.iter_mut() {
        *logit /= sum;
    }
    if let Some(own) = logits.get_mut(target) {
        *own -= 1.0;
    }
    Some(nll::cost(own, largest, total))
}
