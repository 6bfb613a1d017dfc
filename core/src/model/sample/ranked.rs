//! Tokens from the largest logit on, with their weights: an octave of weights at a time, so that tokens are put in order only where a walk ends.

use super::super::gate::steps;
use crate::number::{bits, exp2_neg};

/// Octaves: a weight of 31 bits lies in one of the first 32, the last of which holds those of 0 too.
pub(super) const OCTAVES: usize = 32;

/// Where [`Ranked`] remembers what it found: not within it, since what is moved lies in a frame twice.
pub(super) type Octaves = [Octave; OCTAVES];

/// Tokens whose weights have the same integer part of their logarithm.
#[derive(Clone, Copy)]
pub(super) struct Octave {
    count: u32,
    /// The key of its least logit.
    least: u32,
    /// Of weights.
    sum: u64,
}

impl Octave {
    pub(super) const EMPTY: Self = Self {
        count: 0,
        least: u32::MAX,
        sum: 0,
    };
}

/// What logits count as.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    pub(super) largest: f32,
    pub(super) temperature: f32,
}

impl Weights {
    fn steps(self, logit: f32) -> u32 {
        steps((self.largest - logit) / self.temperature)
    }

    /// 31 bits; the largest logit's is 2³¹.
    pub(super) fn of(self, logit: f32) -> u32 {
        exp2_neg(self.steps(logit))
    }
}

/// What a walk does with what comes next.
pub(super) enum Next {
    /// Takes it.
    Taken,
    /// Looks at its tokens one by one; of one token, ends there.
    Inside,
    /// Ends before it.
    Over,
}

/// Tokens by falling logit, the lower token first of equals.
pub(super) struct Ranked<'s> {
    logits: &'s [f32],
    weights: Weights,
    octaves: &'s mut Octaves,
    /// The tokens of one octave: those that came off, in order, behind a heap of the others.
    room: &'s mut [u32],
    /// That octave.
    open: usize,
    /// How many tokens it has, and how many of them are in the heap still.
    count: usize,
    left: usize,
}

/// Orders as logits do; −0 is 0.
fn key(logit: f32) -> u32 {
    bits::ordered(logit + 0.0)
}

impl<'s> Ranked<'s> {
    /// Of all logits that are numbers, the largest among them; `octaves` are empty. `None` with less scratch than logits. O(V).
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

    /// Shows `next` what comes, from the largest on: a whole octave, as how many tokens it has, the sum of their weights and the least of their
    /// logits; one that is not taken token by token, each as an octave of its own. Gives the token at which the walk ends; `None` if it ends nowhere.
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

    /// Makes a heap of an octave's tokens, if that is not the one that lies there. O(V).
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

    /// Takes the largest off, and puts it down at the end.
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

    /// The token at a place in the order of the octave.
    fn nth(&mut self, place: usize) -> Option<u32> {
        while self.count.saturating_sub(self.left) <= place {
            self.pop()?;
        }
        let from_end = self.count.checked_sub(place.checked_add(1)?)?;
        self.room.get(from_end).copied()
    }

    fn sink(&mut self, root: usize) {
        let logits = self.logits;
        // Logits before tokens.
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
