//! AdamW (Loshchilov and Hutter, *Decoupled Weight Decay Regularization*, 2019), as a fixed sequence of operations.

use crate::number::Lanes;
#[cfg(doc)]
use crate::number::root::sqrt_f32;
use crate::number::root::sqrt_f64;

/// Constants of a training run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AdamW {
    /// Share of the mean of gradients that is kept per step, β₁.
    pub beta1: f32,
    /// Share of the mean of their squares that is kept per step, β₂.
    pub beta2: f32,
    /// Number added to the root, ε.
    pub eps: f32,
    /// Share of a matrix that a learning rate of 1 would remove; gains do not decay.
    pub decay: f32,
    /// Norm to which the gradients of all tensors together are limited; infinite for no limit.
    pub clip: f32,
}

impl AdamW {
    /// 0.9, 0.95, 10⁻⁸, a decay of 0.1, a norm of 1.
    pub const DEFAULT: Self = {
        Self {
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            decay: 0.1,
            clip: 1.0,
        }
    };
}

/// Values that are the same for all weights of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Update {
    /// The learning rate.
    pub rate: f32,
    /// Factor of gradients, so that their norm is at most [`AdamW::clip`].
    pub clip: f32,
    /// β₁ and β₂ to the power of the step's number, counted from 1: products with one factor per step, in f64.
    pub powers: [f64; 2],
}

/// Returns a sum of gradients as a gradient: fl(f32(sum) · `unit`), with the unit fl(2ᵘ / targets).
#[inline(always)]
pub fn gradient(sum: i64, unit: f32) -> f32 {
    sum as f32 * unit
}

/// Returns the value of one unit of a sum: fl(2ᵘ / targets), for sums in units of 2ᵘ.
pub fn unit(exponent: i32, targets: u64) -> f32 {
    super::power::two_to(exponent) / targets as f32
}

/// Returns the sum of squares of a tensor's gradients, in the order of [`crate::number::lanes`]. O(n).
pub fn squares(sums: &[i64], unit: f32) -> f32 {
    let mut lanes = Lanes::<f32>::new();
    let mut values = [0.0; 64];
    for sums in sums.chunks(64) {
        for (value, &sum) in values.iter_mut().zip(sums) {
            *value = gradient(sum, unit);
        }
        lanes.squares(values.get(..sums.len()).unwrap_or_default());
    }
    lanes.total()
}

impl AdamW {
    /// Returns the factor that limits gradients to [`AdamW::clip`], from the sums of squares of all tensors, added in
    /// f64 in their order: fl(clip / f32(√sum)), with the root in f64, but at most 1.
    pub fn clip(&self, squares: f64) -> f32 {
        let norm = sqrt_f64(squares) as f32;
        // A norm of 0 makes it infinite or NaN, neither of which is below 1.
        let factor = self.clip / norm;
        if factor < 1.0 { factor } else { 1.0 }
    }

    /// Updates a tensor's weights and the means of gradients and of their squares, all of the sums' length. Each
    /// operation is rounded once: m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g², w = (w − (rate · decay) · w) − rate ·
    /// ((m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)). g is already limited: fl([`gradient`] · [`Update::clip`]). 1 − βᵗ
    /// is computed in f64 and rounded to f32; 1 − β is computed in f32. O(n).
    ///
    /// With β₂ = 1 second moments are not changed: for those that [`factored`](super::factored()) computes. The powers
    /// are those of the β₂ of the factors.
    ///
    /// `root` is the square root, rounded once: [`sqrt_f32`], or a processor's own.
    #[inline(always)]
    pub fn update(
        &self,
        root: impl Fn(f32) -> f32,
        update: &Update,
        (sums, unit): (&[i64], f32),
        decays: bool,
        weights: &mut [f32],
        (first, second): (&mut [f32], &mut [f32]),
    ) {
        let limit = f32::INFINITY;
        self.advance(
            root,
            update,
            (sums, unit),
            (decays, limit),
            weights,
            (first, second),
        );
    }

    /// Does [`AdamW::update`] with steps of at most `limit` learning rates.
    #[inline(always)]
    pub(super) fn advance(
        &self,
        root: impl Fn(f32) -> f32,
        update: &Update,
        (sums, unit): (&[i64], f32),
        (decays, limit): (bool, f32),
        weights: &mut [f32],
        (first, second): (&mut [f32], &mut [f32]),
    ) {
        let [beta1, beta2] = update.powers;
        let corrections = ((1.0 - beta1) as f32, (1.0 - beta2) as f32);
        let (new1, new2) = (1.0 - self.beta1, 1.0 - self.beta2);
        let decay = if decays {
            update.rate * self.decay
        } else {
            0.0
        };
        let moments = first.iter_mut().zip(second);
        for ((weight, &sum), (m, v)) in weights.iter_mut().zip(sums).zip(moments) {
            let g = gradient(sum, unit) * update.clip;
            *m = self.beta1 * *m + new1 * g;
            *v = self.beta2 * *v + new2 * (g * g);
            let step = (*m / corrections.0) / (root(*v / corrections.1) + self.eps);
            let step = step.clamp(-limit, limit);
            *weight = (*weight - decay * *weight) - update.rate * step;
        }
    }
}
