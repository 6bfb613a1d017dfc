//! Learning rate and weight decay per step.

use crate::number::sin_cos;

/// Decrease of a learning rate from its highest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fall {
    /// Like half a turn of a cosine; weights decay in all steps.
    Cosine,
    /// Linear. The second half of all steps uses two thirds of the rate and no weight decay: a ternary weight near 0
    /// changes its code as long as the rate is high, and settles at a low one (Ma et al., *The Era of 1-bit LLMs:
    /// Training Tips, Code and FAQ*, 2024).
    TwoStage,
}

impl Fall {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Cosine, Self::TwoStage];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::TwoStage => "two-stage",
        }
    }
}

/// A learning rate that rises linearly and then falls.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Schedule {
    /// Decrease after the highest rate.
    pub fall: Fall,
    /// The highest rate.
    pub rate: f32,
    /// Share of the highest rate at the end; with two stages, two thirds of it.
    pub last: f32,
    /// Number of steps until the highest rate.
    pub warmup: u64,
    /// Total number of steps.
    pub steps: u64,
}

impl Schedule {
    /// Returns the rate of a step, counted from 0: fl(rate · fl(fl(step + 1) / fl(warmup))) up to the highest rate,
    /// then fl(rate · fl(last + fl(fl(1 − last) · remaining))). For a cosine, remaining is fl(fl(1 + cos) · 0.5),
    /// with the cosine of a part of half a turn from [`sin_cos`]. For a line it is fl(1 − fl(fl(gone) / fl(all))), in
    /// steps after the warm-up. The rate of a second stage is multiplied by fl(2 / 3).
    ///
    /// ```
    /// use tercet_core::train::{Fall, Schedule};
    ///
    /// let schedule = Schedule { fall: Fall::Cosine, rate: 1.0, last: 0.0, warmup: 2, steps: 10 };
    /// assert_eq!([0, 1, 2, 6, 10].map(|step| schedule.at(step)), [0.5, 1.0, 1.0, 0.5, 0.0]);
    /// let schedule = Schedule { fall: Fall::TwoStage, warmup: 0, steps: 8, ..schedule };
    /// assert_eq!([0, 2, 4, 8].map(|step| schedule.at(step)), [1.0, 0.75, 0.5 * (2.0 / 3.0), 0.0]);
    /// assert_eq!([0, 3, 4, 8].map(|step| schedule.decays(step)), [true, true, false, false]);
    /// ```
    pub fn at(&self, step: u64) -> f32 {
        if step < self.warmup {
            return self.rate * (step.saturating_add(1) as f32 / self.warmup as f32);
        }
        let all = self.steps.saturating_sub(self.warmup);
        let gone = (step - self.warmup).min(all);
        let left = match self.fall {
            Fall::Cosine => {
                // Part of 2⁶³, which is half a turn.
                let phase = (u128::from(gone) << 63)
                    .checked_div(all.into())
                    .unwrap_or(1 << 63);
                let (_, cosine) = sin_cos(phase as u64);
                (1.0 + cosine) * 0.5
            }
            Fall::TwoStage if all == 0 => 0.0,
            Fall::TwoStage => 1.0 - gone as f32 / all as f32,
        };
        let rate = self.rate * (self.last + (1.0 - self.last) * left);
        match self.is_second(step) {
            true => rate * (2.0 / 3.0),
            false => rate,
        }
    }

    /// Returns true if weights decay in a step, counted from 0.
    pub const fn decays(&self, step: u64) -> bool {
        !self.is_second(step)
    }

    /// Returns true if a step belongs to a second stage.
    const fn is_second(&self, step: u64) -> bool {
        matches!(self.fall, Fall::TwoStage) && step >= self.steps / 2
    }
}
