//! Learning rate and weight decay, step by step.

use crate::number::sin_cos;

/// How a learning rate falls from the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fall {
    /// As half a turn of a cosine; weights decay all along.
    Cosine,
    /// In a line, of which the second half of all steps takes two thirds and without weight decay: a ternary weight that is near 0 changes its code
    /// as long as the rate is high, and settles at a low one (Ma et al., *The Era of 1-bit LLMs: Training Tips, Code and FAQ*, 2024).
    TwoStage,
}

impl Fall {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Cosine, Self::TwoStage];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::TwoStage => "two-stage",
        }
    }
}

/// A learning rate that rises in a line and falls.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Schedule {
    /// How it falls.
    pub fall: Fall,
    /// The highest rate.
    pub rate: f32,
    /// The share of it that is left at the end; of two stages, two thirds of that.
    pub last: f32,
    /// Steps until the highest.
    pub warmup: u64,
    /// All steps.
    pub steps: u64,
}

impl Schedule {
    /// The rate of a step, the first of which is 0: fl(rate · fl(fl(step + 1) / fl(warmup))) up to the highest, then
    /// fl(rate · fl(last + fl(fl(1 − last) · left))). What is left of a cosine is fl(fl(1 + cos) · 0.5), the cosine of half a turn's part that
    /// [`sin_cos`] gives; of a line, fl(1 − fl(fl(gone) / fl(all))), steps after the warm-up; the rate of a second stage is multiplied by fl(2 / 3).
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
                // Of 2⁶³, which is half a turn.
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

    /// Whether weights decay in a step, the first of which is 0.
    pub const fn decays(&self, step: u64) -> bool {
        !self.is_second(step)
    }

    /// Whether a step is of a second stage.
    const fn is_second(&self, step: u64) -> bool {
        matches!(self.fall, Fall::TwoStage) && step >= self.steps / 2
    }
}
