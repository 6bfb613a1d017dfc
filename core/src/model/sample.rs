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

use super::gate::steps;
use crate::number::{bits, counter, exp2_neg};

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
        let logits = &*logits;
        let mut heap = Heap::new(logits, scratch)?;
        let first = heap.peek()?;
        let largest = *logits.get(first as usize)?;
        let weight = |token: u32| {
            let logit = logits
                .get(token as usize)
                .copied()
                .unwrap_or(f32::NEG_INFINITY);
            exp2_neg(steps((largest - logit) / self.temperature))
        };
        let all = heap.len();
        let keep = if self.top_k == 0 {
            all
        } else {
            self.top_k.min(all)
        };
        // The kept ones' sum: of all, in any order; else of those that come off first, which are put down in order behind the heap.
        let total: u64 = if keep == all {
            heap.tokens().map(|token| u64::from(weight(token))).sum()
        } else {
            (0..keep)
                .filter_map(|_| heap.pop())
                .map(|token| u64::from(weight(token)))
                .sum()
        };
        let enough = share(self.top_p, total);
        let least = share(self.min_p, u64::from(weight(first))) as u32;
        // Those that are left, from the largest on.
        let (mut sum, mut count) = (0u64, 0usize);
        while count < keep && (count == 0 || sum < enough) {
            let Some(token) = heap.nth(count) else { break };
            let own = weight(token);
            if count > 0 && own < least {
                break;
            }
            sum = sum.wrapping_add(u64::from(own));
            count = count.wrapping_add(1);
        }
        let [low, high, ..] = counter(self.seed, self.stream, position);
        let draw = u128::from(u64::from(high) << 32 | u64::from(low)) * u128::from(sum);
        let mut place = (draw >> 64) as u64;
        for index in 0..count {
            let token = heap.nth(index)?;
            let own = u64::from(weight(token));
            if place < own {
                return Some(token);
            }
            place = place.wrapping_sub(own);
        }
        None
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
    let mut best: Option<(u32, f32)> = None;
    for (token, &logit) in (0..).zip(logits) {
        if !logit.is_nan() && best.is_none_or(|(_, largest)| logit > largest) {
            best = Some((token, logit));
        }
    }
    best.map(|(token, _)| token)
}

/// Tokens by falling logit, the lower token first of equals: those that came off, in order, behind a heap of the others.
struct Heap<'s> {
    logits: &'s [f32],
    tokens: &'s mut [u32],
    /// How many are in the heap still.
    left: usize,
}

impl<'s> Heap<'s> {
    /// Of all logits that are numbers. O(V).
    fn new(logits: &'s [f32], scratch: &'s mut [u32]) -> Option<Self> {
        let mut count = 0usize;
        let room = scratch.get_mut(..logits.len())?;
        let mut slots = room.iter_mut();
        for (token, logit) in (0u32..).zip(logits) {
            if !logit.is_nan()
                && let Some(slot) = slots.next()
            {
                *slot = token;
                count = count.wrapping_add(1);
            }
        }
        let mut heap = Self {
            logits,
            tokens: room.get_mut(..count)?,
            left: count,
        };
        for root in (0..count / 2).rev() {
            heap.sink(root);
        }
        Some(heap)
    }

    const fn len(&self) -> usize {
        self.tokens.len()
    }

    fn peek(&self) -> Option<u32> {
        self.tokens.first().copied()
    }

    /// The tokens, in no order.
    fn tokens(&self) -> impl Iterator<Item = u32> {
        self.tokens.iter().copied()
    }

    /// Takes the largest off, and puts it down at the end.
    fn pop(&mut self) -> Option<u32> {
        let last = self.left.checked_sub(1)?;
        let token = self.tokens.first().copied()?;
        let other = self.tokens.get(last).copied()?;
        *self.tokens.first_mut()? = other;
        *self.tokens.get_mut(last)? = token;
        self.left = last;
        self.sink(0);
        Some(token)
    }

    /// The token at a place in the order.
    fn nth(&mut self, index: usize) -> Option<u32> {
        while self.tokens.len().saturating_sub(self.left) <= index {
            self.pop()?;
        }
        let from_end = self.tokens.len().checked_sub(index.checked_add(1)?)?;
        self.tokens.get(from_end).copied()
    }

    fn sink(&mut self, root: usize) {
        let logits = self.logits;
        // Logits before tokens.
        let key = |token: u32| {
            let logit = logits.get(token as usize).copied().unwrap_or(f32::NAN);
            // −0 is 0.
            u64::from(bits::ordered(logit + 0.0)) << 32 | u64::from(!token)
        };
        let heap = self.tokens.get_mut(..self.left).unwrap_or_default();
        let Some(&own) = heap.get(root) else { return };
        let (mut root, own_key) = (root, key(own));
        loop {
            let left = root.saturating_mul(2).saturating_add(1);
            let Some(&first) = heap.get(left) else { break };
            let first_key = key(first);
            let (mut child, mut token, mut larger) = (left, first, first_key);
            if let Some(&second) = heap.get(left.saturating_add(1))
                && key(second) > first_key
            {
                (child, token, larger) = (left.saturating_add(1), second, key(second));
            }
            if own_key >= larger {
                break;
            }
            if let Some(slot) = heap.get_mut(root) {
                *slot = token;
            }
            root = child;
        }
        if let Some(slot) = heap.get_mut(root) {
            *slot = own;
        }
    }
}
