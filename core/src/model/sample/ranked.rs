//! Tokens in order of falling logit, with their weights. They are grouped by octaves of weights, so that tokens are
//! sorted only in the octave in which a walk ends.

use super::super::gate::steps;
use crate::number::{bits, exp2_neg};

/// Number of octaves: a 31-bit weight belongs to one of the first 32; the last one also holds weights of 0.
pub(super) const OCTAVES: usize = 32;

/// Memory of [`Ranked`]. It is a separate value, because a value that is moved occupies the stack twice.
pub(super) type Octaves = [Octave; OCTAVES];

/// Tokens whose weights' logarithms have the same integer part.
#[derive(Clone, Copy)]
pub(super) struct Octave {
    count: u32,
    /// Key of its smallest logit.
    least: u32,
    /// Sum of its weights.
    sum: u64,
}

impl Octave {
    pub(super) const EMPTY: Self = Self {
        count: 0,
        least: u32::MAX,
        sum: 0,
    };
}

/// Weights of logits.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) largest: f32,
    pub(super) temperature: f32,
}

impl Weights {
    fn steps(self, logit: f32) -> u32 {
        steps((self.largest - logit) / self.temperature)
    }

    /// Returns the 31-bit weight of a logit; that of the largest logit is 2³¹.
    pub(super) fn of(self, logit: f32) -> u32 {
        exp2_neg(self.steps(logit))
    }
}

/// Answer of a walk's function for the next octave or token.
pub(super) enum Next {
    /// Take it.
    Taken,
    /// Look at its tokens one by one; for a single token, end the walk there.
    Inside,
    /// End the walk before it.
    Over,
}

/// Tokens in order of falling logit; of equal ones the lower token first.
pub(super) struct Ranked<'s> {
    logits: &'s [f32],
    weights: Weights,
    octaves: &'s mut Octaves,
    /// The tokens of one octave: a heap, followed by the tokens that were removed from it, in order.
    room: &'s mut [u32],
    /// Index of that octave.
    open: usize,
    /// Number of its tokens, and number of those that are still in the heap.
    count: usize,
    left: usize,
}

/// Returns a key that orders like the logits, with −0 as 0.
fn key(logit: f32) -> u32 {
    bits::ordered(logit + 0.0)
}

impl<'s> Ranked<'s> {
    /// Collects all logits that are not NaN; `weights` contains the largest. `octaves` must be empty. Returns `None`
    /// if there is less scratch than logits. O(V).
    pub(super) fn new(
        logits: &'s [f32],
        weights: Weights,
        octaves: &'s mut Octaves,
        scratch: &'s mut [u32],
    ) -> Option<Self> {
        let room = scratch.get_mut(..logits.len())?;
        for &logit in logits {
            if logit.is_nan() {
                continue;
            }
            let steps = weights.steps(logit);
            if let Some(octave) = octaves.get_mut((steps >> 20) as usize) {
                octave.count = octave.count.wrapping_add(1);
                octave.sum = octave.sum.wrapping_add(u64::from(exp2_neg(steps)));
                octave.least = octave.least.min(key(logit));
            }
        }
        Some(Self {
            logits,
            weights,
            octaves,
            room,
            open: OCTAVES,
            count: 0,
            left: 0,
        })
    }

    /// Passes octaves to `next`, from the largest on: the number of tokens, the sum of their weights and the smallest
    /// of their logits. If `next` does not take an octave as a whole, it gets its tokens one by one, each as an
    /// octave of its own. Returns the token at which the walk ends, or `None` if it does not end at a token.
    pub(super) fn walk(&mut self, mut next: impl FnMut(u32, u64, f32) -> Next) -> Option<u32> {
        for index in 0..OCTAVES {
            let octave = *self.octaves.get(index)?;
            if octave.count == 0 {
                continue;
            }
            let least = bits::from_ordered(octave.least);
            match next(octave.count, octave.sum, least) {
                Next::Taken => continue,
                Next::Inside => {}
                Next::Over => return None,
            }
            self.open(index, octave.least);
            for place in 0..self.count {
                let token = self.nth(place)?;
                let logit = *self.logits.get(token as usize)?;
                let own = u64::from(self.weights.of(logit));
                match next(1, own, logit) {
                    Next::Taken => {}
                    Next::Inside => return Some(token),
                    Next::Over => return None,
                }
            }
        }
        None
    }

    /// Builds a heap of an octave's tokens, unless it is already there. O(V).
    fn open(&mut self, index: usize, least: u32) {
        if self.open == index {
            return;
        }
        self.open = index;
        let before = self.octaves.get(..index).unwrap_or_default();
        let above = before
            .iter()
            .fold(u32::MAX, |key, other| key.min(other.least));
        self.count = 0;
        for (token, &logit) in (0u32..).zip(self.logits) {
            let key = key(logit);
            if logit.is_nan() || key < least || key >= above {
                continue;
            }
            if let Some(slot) = self.room.get_mut(self.count) {
                *slot = token;
                self.count = self.count.wrapping_add(1);
            }
        }
        self.left = self.count;
        for root in (0..self.count / 2).rev() {
            self.sink(root);
        }
    }

    /// Removes the largest token from the heap, and puts it at the end.
    fn pop(&mut self) -> Option<()> {
        let last = self.left.checked_sub(1)?;
        let token = self.room.first().copied()?;
        let other = self.room.get(last).copied()?;
        *self.room.first_mut()? = other;
        *self.room.get_mut(last)? = token;
        self.left = last;
        self.sink(0);
        Some(())
    }

    /// Returns the token at a place in the order of the octave.
    fn nth(&mut self, place: usize) -> Option<u32> {
        while self.count.saturating_sub(self.left) <= place {
            self.pop()?;
        }
        let from_end = self.count.checked_sub(place.checked_add(1)?)?;
        self.room.get(from_end).copied()
    }

    fn sink(&mut self, root: usize) {
        let logits = self.logits;
        // Logits first, then tokens.
        let rank = |token: u32| {
            let logit = logits.get(token as usize).copied().unwrap_or(f32::NAN);
            u64::from(key(logit)) << 32 | u64::from(!token)
        };
        let heap = self.room.get_mut(..self.left).unwrap_or_default();
        let Some(&own) = heap.get(root) else { return };
        let (mut root, own_rank) = (root, rank(own));
        loop {
            let left = root.saturating_mul(2).saturating_add(1);
            let Some(&first) = heap.get(left) else { break };
            let (mut child, mut token, mut larger) = (left, first, rank(first));
            if let Some(&second) = heap.get(left.saturating_add(1))
                && rank(second) > larger
            {
                (child, token, larger) = (left.saturating_add(1), second, rank(second));
            }
            if own_rank >= larger {
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
