//! AdamW (Loshchilov and Hutter, *Decoupled Weight Decay Regularization*, 2019), step by step of a stated order.

use crate::number::Lanes;
#[cfg(doc)]
use crate::number::root::sqrt_f32;
use crate::number::root::sqrt_f64;

/// What stays the same over a run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AdamW {
    /// How much of the mean of gradients stays, β₁.
    pub beta1: f32,
    /// How much of the mean of their squares stays, β₂.
    pub beta2: f32,
    /// What is added to the root, ε.
    pub eps: f32,
    /// The share of a matrix that a learning rate of 1 would take away; gains keep all.
    pub decay: f32,
    /// The norm to which gradients of all tensors together are cut; infinite for none.
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

/// What is the same for all weights of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Update {
    /// The learning rate.
    pub rate: f32,
    /// What gradients are multiplied by, so that their norm is [`AdamW::clip`] at most.
    pub clip: f32,
    /// β₁ and β₂ to the power of the step's number, from 1 on: products of a step each, in f64.
    pub powers: [f64; 2],
}

/// A sum of gradients as a gradient: fl(f32(sum) · `unit`), where the unit is fl(2ᵘ / targets).
#[inline(always)]
pub fn gradient(sum: i64, unit: f32) -> f32 {
    sum as f32 * unit
}

/// What a unit of a sum is worth: fl(2ᵘ / targets), for sums in units of 2ᵘ.
pub fn unit(exponent: i32, targets: u64) -> f32 {
    super::power::two_to(exponent) / targets as f32
}

/// The sum of squares of a tensor's gradients in the order of [`crate::number::lanes`]. O(n).
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
    /// The factor that cuts gradients to [`AdamW::clip`], from the sums of squares of all tensors, added in f64 in their order: fl(clip / f32(√sum)), the
    /// root in f64, and 1 at most.
    pub fn clip(&self, squares: f64) -> f32 {
        let norm = sqrt_f64(squares) as f32;
        // A norm of 0 makes it infinite or NaN, of which neither is below 1.
        let factor = self.clip / norm;
        if factor < 1.0 { factor } else { 1.0 }
    }

    /// Updates a tensor's weights and the means of gradients and of their squares, all of one length with the sums. Each operation is rounded once:
    /// m = β₁m + (1 − β₁)g, v = β₂v + (1 − β₂)g², w = (w − (rate · decay) · w) − rate · ((m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)), g cut already:
    /// fl([`gradient`] · [`Update::clip`]). 1 − βᵗ is of f64, rounded to f32; 1 − β is of f32. O(n).
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
            *weight = (*weight - decay * *weight) - update.rate * step;
        }
    }
}
