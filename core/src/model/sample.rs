//! Draws the next token exactly from logits.
//!
//! In this order, with every step rounded once:
//! 1. Repetition (Keskar and others, *CTRL*, 2019): the logit of each token that occurs among the last ones is
//!    divided by the penalty if it is positive, and multiplied by it otherwise.
//! 2. Top-k: keeps the k largest logits; of equal ones the lower token.
//! 3. Temperature: the weight of a logit l is 2 to the power of −log₂ e · fl((m − l) / T), with m the largest logit,
//!    by [`exp2_neg`] in 31 bits.
//! 4. Top-p (Holtzman and others, 2020): keeps, from the largest on, the fewest tokens whose sum of weights reaches p
//!    of the total.
//! 5. Min-p: keeps the tokens whose weight reaches p of the largest.
//! 6. The draw: 64 bits of [`counter`]`(seed, stream, position)` select a place in the sum of the remaining weights,
//!    from the largest on.
//!
//! So a token depends only on logits, text and position. At a temperature of 0 it is the token of the largest logit,
//! the lowest of equal ones.

mod ranked;

use crate::number::counter;
use ranked::{Next, OCTAVES, Octave, Octaves, Ranked, Weights};

/// Rules for drawing tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sampler {
    /// Divisor of differences of logits; 0 always takes the largest.
    pub temperature: f32,
    /// Number of largest logits to keep; 0 keeps all.
    pub top_k: usize,
    /// Share of the sum of weights to keep; 1 keeps all.
    pub top_p: f32,
    /// Smallest share of the largest weight that a token must have; 0 for none.
    pub min_p: f32,
    /// Divisor of the logits of repeated tokens; 1 for no penalty.
    pub penalty: f32,
    /// Seed of the draws.
    pub seed: u64,
    /// Number of the seed's stream, for example of a sequence.
    pub stream: u32,
}

impl Default for Sampler {
    fn default() -> Self {
        Self::GREEDY
    }
}

impl Sampler {
    /// Always takes the largest logit.
    pub const GREEDY: Self = Self {
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        penalty: 1.0,
        seed: 0,
        stream: 0,
    };

    /// Returns true if all numbers are within their ranges: temperature at least 0, shares from 0 to 1, a penalty
    /// above 0, all finite.
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

    /// Draws the token that follows position `position`. `recent` are the last tokens, as many as the penalty
    /// considers; the penalty changes the logits. `scratch` has one element per logit.
    ///
    /// Returns `None` if there are no logits, too little scratch, numbers outside their ranges, or only NaN logits.
    /// O(V + k · log V).
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
    // A separate stack frame, which products do not need at the same time.
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
        // The sum of the tokens that top-k keeps.
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
        // And the sum of those that remain after top-p and min-p; the largest always remains.
        let (mut kept, mut left) = (0u32, 0u64);
        ranked.walk(|count, sum, lowest| {
            let first = kept == 0 && count == 1;
            // Takes one more while the sum is too small.
            if kept > 0 && left >= enough {
                return Next::Over;
            }
            let after = left.wrapping_add(sum);
            let whole = kept.saturating_add(count) <= keep
                && (least == 0 || weights.of(lowest) >= least)
                // The order inside an octave does not matter if all of it is needed to reach that sum.
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

/// Returns ⌈share · total⌉, with the share truncated to units of 2⁻³².
fn share(share: f32, total: u64) -> u64 {
    // Exact: a power of two.
    let parts = (share * 4_294_967_296.0) as u64;
    ((u128::from(parts) * u128::from(total) + u128::from(u32::MAX)) >> 32) as u64
}

/// Returns the token of the largest logit, the lowest of equal ones. Ignores NaN; returns `None` if there is no
/// other.
pub fn argmax(logits: &[f32]) -> Option<u32> {
    let first = logits.iter().position(|logit| !logit.is_nan())?;
    let (mut best, mut largest) = (first, *logits.get(first)?);
    for (token, &logit) in logits.iter().enumerate() {
        // False for NaN.
        if logit > largest {
            (best, largest) = (token, logit);
        }
    }
    u32::try_from(best).ok()
}
