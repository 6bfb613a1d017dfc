//! The next token, drawn exactly from logits.
//!
//! In this order, every step rounded once:
//! 1. Repetition (Keskar and others, *CTRL*, 2019): each token that occurs among the last ones has its logit divided by
//!    the penalty if it is positive, multiplied by it otherwise.
//! 2. Top-k: the k largest logits stay, of equals the lower token.
//! 3. Temperature: a logit l counts as 2 to the power of −log₂ e · fl((m − l) / T), m the largest, by [`exp2_neg`] in 31 bits.
//! 4. Top-p (Holtzman and others, 2020): of these, from the largest, the fewest whose sum reaches p of all.
//! 5. Min-p: those that reach p of the largest.
//! 6. The draw: 64 bits of [`counter`]`(seed, stream, position)`, which name a place in the sum of what is left, from the largest on.
//!
//! So a token depends on logits, text and position alone. At a temperature of 0 it is the largest logit's, the lowest of equals.

mod ranked;

use crate::number::counter;
use ranked::{Next, OCTAVES, Octave, Octaves, Ranked, Weights};

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sampler {
    /// What differences of logits are divided by; 0 for always the largest.
    pub temperature: f32,
    /// How many of the largest stay; 0 for all.
    pub top_k: usize,
    /// Of which share of the sum they stay; 1 for all.
    pub top_p: f32,
    /// Which share of the largest one must have; 0 for none.
    pub min_p: f32,
    /// What logits of repeated tokens are divided by; 1 for nothing.
    pub penalty: f32,
    /// The seed.
    pub seed: u64,
    /// Which of a seed's streams, such as a sequence's.
    pub stream: u32,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::GREEDY
    }
}

impl Sampler {
    /// The largest logit.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        penalty: 1.0,
        seed: 0,
        stream: 0,
    };

    /// Whether all numbers are within their ranges: temperature from 0, shares from 0 to 1, a penalty above 0, all finite.
    pub const fn is_valid(&self) -> bool {
        self.temperature >= 0.0
            && self.temperature.is_finite()
            && self.top_p >= 0.0
            && self.top_p <= 1.0
            && self.min_p >= 0.0
            && self.min_p <= 1.0
            && self.penalty > 0.0
            && self.penalty.is_finite()
    }

    /// Draws the token that follows position `position`. `recent` are the last tokens, as many as the penalty looks
    /// back; logits are changed by it. `scratch` has an element for each logit.
    ///
    /// `None` without logits, with too little scratch, where numbers are not within their ranges, or where no logit is
    /// a number. O(V + k · log V).
    ///
    /// ```
    /// use tercet_core::model::Sampler;
    ///
    /// let mut scratch = [0; 3];
    /// let greedy = Sampler::GREEDY.draw(&mut [1.0, 3.0, 3.0], &[], 0, &mut scratch);
    /// assert_eq!(greedy, Some(1));
    /// let warm = Sampler { temperature: 1.0, top_k: 2, seed: 7, ..Sampler::GREEDY };
    /// assert!((0..50).all(|at| warm.draw(&mut [1.0, 3.0, 3.0], &[], at, &mut scratch) != Some(0)));
    /// ```
    // A frame of its own, which products do not need at the same time.
    #[inline(never)]
    pub fn draw(
        &self,
        logits: &mut [f32],
        recent: &[u32],
        position: u64,
        scratch: &mut [u32],
    ) -> Option<u32> {
        if !self.is_valid() || u32::try_from(logits.len()).is_err() {
            return None;
        }
        self.penalize(logits, recent);
        if self.temperature == 0.0 {
            return argmax(logits);
        }
        let weights = Weights {
            largest: *logits.get(argmax(logits)? as usize)?,
            temperature: self.temperature,
        };
        let mut octaves: Octaves = [Octave::EMPTY; OCTAVES];
        let mut ranked = Ranked::new(logits, weights, &mut octaves, scratch)?;
        let keep = match self.top_k {
            0 => u32::MAX,
            keep => u32::try_from(keep).unwrap_or(u32::MAX),
        };
        // The sum of those that top-k keeps.
        let (mut kept, mut total) = (0u32, 0u64);
        ranked.walk(|count, sum, _| {
            if kept.saturating_add(count) > keep {
                return Next::Inside;
            }
            kept = kept.saturating_add(count);
            total = total.wrapping_add(sum);
            Next::Taken
        });
        let enough = share(self.top_p, total);
        let least = share(self.min_p, u64::from(weights.of(weights.largest))) as u32;
        // And of those of them that are left: the largest always is.
        let (mut kept, mut left) = (0u32, 0u64);
        ranked.walk(|count, sum, lowest| {
            let first = kept == 0 && count == 1;
            // One more is taken while there is not enough.
            if kept > 0 && left >= enough {
                return Next::Over;
            }
            let after = left.wrapping_add(sum);
            let whole = kept.saturating_add(count) <= keep
                && (least == 0 || weights.of(lowest) >= least)
                // What an octave has behind enough counts nothing if that is its sum.
                && (count == 1 || after <= enough);
            if !(whole || first) {
                return Next::Inside;
            }
            kept = kept.saturating_add(count);
            left = after;
            Next::Taken
        });
        let [low, high, ..] = counter(self.seed, self.stream, position);
        let draw = u128::from(u64::from(high) << 32 | u64::from(low)) * u128::from(left);
        let mut place = (draw >> 64) as u64;
        ranked.walk(|_, sum, _| {
            if place < sum {
                return Next::Inside;
            }
            place = place.wrapping_sub(sum);
            Next::Taken
        })
    }

    fn penalize(&self, logits: &mut [f32], recent: &[u32]) {
        if self.penalty == 1.0 {
            return;
        }
        for (index, &token) in recent.iter().enumerate() {
            let before = recent.get(..index).unwrap_or_default();
            if before.contains(&token) {
                continue;
            }
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit = if *logit > 0.0 {
                    *logit / self.penalty
                } else {
                    *logit * self.penalty
                };
            }
        }
    }
}

/// ⌈share · total⌉ with the share cut off to 2⁻³².
fn share(share: f32, total: u64) -> u64 {
    let parts = (f64::from(share) * 4_294_967_296.0) as u64;
    ((u128::from(parts) * u128::from(total) + u128::from(u32::MAX)) >> 32) as u64
}

/// The token of the largest logit, the lowest of equals; NaN is passed over. `None` where there is no other.
pub fn argmax(logits: &[f32]) -> Option<u32> {
    let first = logits.iter().position(|logit| !logit.is_nan())?;
    let (mut best, mut largest) = (first, *logits.get(first)?);
    for (token, &logit) in logits.iter().enumerate() {
        // Not so of NaN.
        if logit > largest {
            (best, largest) = (token, logit);
        }
    }
    u32::try_from(best).ok()
}
