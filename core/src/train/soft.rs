//! Soft targets: a teacher's probabilities beside the token that follows.

use crate::model::gate::steps;
use crate::model::nll;
use crate::number::exp2_neg;

/// A teacher's probabilities of every token, as targets beside the one that follows (Hinton, Vinyals and Dean,
/// *Distilling the Knowledge in a Neural Network*, 2015).
///
/// With T the temperature, α the share, p and t the student's and the teacher's probabilities, and y one at the target
/// and zero elsewhere, the gradient of a logit is (1 − α) · (p − y) + α · T · (p at T − t at T). That is the gradient
/// of (1 − α) times the cost of the target plus α · T² times the cross-entropy of the two distributions at T.
#[derive(Clone, Copy, Debug)]
pub struct SoftTargets<'b> {
    probabilities: &'b [f32],
    temperature: f32,
    share: f32,
}

impl<'b> SoftTargets<'b> {
    /// Returns the targets: a row of `probabilities` has one for each token of the vocabulary, at this temperature
    /// ([`soften`]), and there is a row for each token of the batch.
    ///
    /// `None` unless the temperature is above 0 and finite, and the share from 0 to 1.
    pub const fn new(probabilities: &'b [f32], temperature: f32, share: f32) -> Option<Self> {
        if !(temperature > 0.0 && temperature.is_finite() && share >= 0.0 && share <= 1.0) {
            return None;
        }
        Some(Self {
            probabilities,
            temperature,
            share,
        })
    }

    /// Returns the number of probabilities.
    pub(super) const fn len(&self) -> usize {
        self.probabilities.len()
    }

    /// As [`loss`](super::loss), which it equals for a share of 0, with the gradient of both costs; the returned cost
    /// is the target's alone. `row` is the teacher's; `None` also if there is no such row.
    ///
    /// Below, T divides the distance of a logit below the largest; p is computed as in [`loss`](super::loss). The
    /// gradient is fl(fl(fl(1 − α) · fl(p − y)) + fl(fl(α · T) · fl(p at T − t at T))). O(n).
    pub fn loss(&self, logits: &mut [f32], row: usize, target: usize) -> Option<i64> {
        let &own = logits.get(target)?;
        let largest = nll::largest(logits)?;
        let first = row.saturating_mul(logits.len());
        let teacher = self
            .probabilities
            .get(first..first.saturating_add(logits.len()))?;
        let (mut total, mut soft_total) = (0u64, 0u64);
        for &logit in logits.iter() {
            let below = largest - logit;
            total = total.wrapping_add(u64::from(exp2_neg(steps(below))));
            let power = exp2_neg(steps(below / self.temperature));
            soft_total = soft_total.wrapping_add(u64::from(power));
        }
        let (sum, soft_sum) = (total as f32, soft_total as f32);
        let (hard, soft) = (1.0 - self.share, self.share * self.temperature);
        for (index, (logit, &t)) in logits.iter_mut().zip(teacher).enumerate() {
            let below = largest - *logit;
            let p = exp2_neg(steps(below)) as f32 / sum;
            let q = exp2_neg(steps(below / self.temperature)) as f32 / soft_sum;
            let y = if index == target { 1.0 } else { 0.0 };
            *logit = hard * (p - y) + soft * (q - t);
        }
        Some(nll::cost(own, largest, total))
    }
}

/// Replaces a teacher's logits by its probabilities at a temperature, which is above 0, for [`SoftTargets`]. Returns
/// false, and leaves them as they are, if a logit is not finite.
///
/// With m the largest logit and q in Q31 from [`exp2_neg`] for fl((m − logit) / temperature), a probability is
/// fl(f32(q) / f32(Σq)). O(n).
///
/// ```
/// use tercet_core::train::soften;
///
/// // One is e to the power of 2 as likely as the other; at twice the temperature, e.
/// let mut logits = [1.0, -1.0];
/// assert!(soften(&mut logits, 2.0));
/// assert!((logits[0] / logits[1] - core::f32::consts::E).abs() < 1e-4);
/// ```
#[must_use]
pub fn soften(logits: &mut [f32], temperature: f32) -> bool {
    let Some(largest) = nll::largest(logits) else {
        return false;
    };
    let mut total = 0u64;
    for logit in logits.iter_mut() {
        let power = exp2_neg(steps((largest - *logit) / temperature));
        total = total.wrapping_add(u64::from(power));
        *logit = power as f32;
    }
    let sum = total as f32;
    for logit in logits.iter_mut() {
        *logit /= sum;
    }
    true
}
