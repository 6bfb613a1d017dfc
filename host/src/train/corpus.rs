//! The tokens of a text, and the choice of tokens for a batch.

use tercet_core::conformance::Digest;
use tercet_core::number::counter;

use super::tokens::Tokens;
use crate::Error;

/// The random stream for the order of a corpus; each stream has its own number.
const ORDER: u32 = 1;
/// The random stream for the start of an epoch's windows.
const OFFSET: u32 = 2;
/// Rounds of the permutation.
const ROUNDS: u64 = 6;

/// A text as tokens, split into windows. Every epoch uses each window once, in its own order.
#[derive(Debug)]
pub struct Corpus {
    tokens: Tokens,
    held_out: Vec<u32>,
    context: usize,
    begin: Option<u32>,
    seed: u64,
    /// The windows to train on, if these are not all.
    kept: Option<Vec<u64>>,
}

impl Corpus {
    /// Makes a corpus of the tokens of a text, for windows of `context` positions that begin with the token `begin`, if
    /// there is one, and of the tokens of a held-out text.
    ///
    /// # Errors
    /// [`Error::Options`] if there are fewer tokens than two windows need.
    pub fn new(
        tokens: Tokens,
        held_out: Vec<u32>,
        context: usize,
        begin: Option<u32>,
        seed: u64,
    ) -> Result<Self, Error> {
        let needed = 2 * context + 1;
        if context == 0 || tokens.len() < needed {
            let found = tokens.len();
            return Err(Error::options(format!(
                "a text of {found} tokens is too short to train on: windows of {context} need at least {needed}; give more text or a shorter context"
            )));
        }
        Ok(Self {
            tokens,
            held_out,
            context,
            begin,
            seed,
            kept: None,
        })
    }

    /// Keeps some of the windows, which are given in order.
    pub(super) fn with_windows(self, kept: Vec<u64>) -> Self {
        let kept = Some(kept);
        Self { kept, ..self }
    }

    /// Returns the number, among all windows of the text, of one of those to train on.
    pub(super) fn numbered(&self, window: u64) -> u64 {
        match &self.kept {
            Some(kept) => kept[window as usize],
            None => window,
        }
    }

    /// Copies tokens to train on.
    pub(super) fn copy(&self, first: usize, to: &mut [u32]) {
        self.tokens.copy(first, to);
    }

    /// Returns the positions per window.
    pub const fn context(&self) -> usize {
        self.context
    }

    /// Returns the token that windows begin with.
    pub const fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Returns FNV-1a of 64 bits over the tokens, with four little-endian bytes each: first those to train on, then the
    /// others. Then come the numbers of the kept windows, in eight bytes each, if these are not all.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        let mut piece = [0; 1 << 12];
        for first in (0..self.tokens.len()).step_by(piece.len()) {
            let piece = match self.tokens.len() - first {
                left if left < piece.len() => &mut piece[..left],
                _ => &mut piece,
            };
            self.tokens.copy(first, piece);
            for token in piece {
                digest.bytes(&token.to_le_bytes());
            }
        }
        for token in &self.held_out {
            digest.bytes(&token.to_le_bytes());
        }
        for window in self.kept.iter().flatten() {
            digest.bytes(&window.to_le_bytes());
        }
        digest.value()
    }

    /// Returns the number of tokens to train on.
    pub fn tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the held-out tokens.
    pub fn held_out(&self) -> &[u32] {
        &self.held_out
    }

    /// Returns the bytes of the tokens in memory.
    pub(super) fn bytes(&self) -> usize {
        let train = match &self.tokens {
            Tokens::InMemory(tokens) => tokens.len(),
            Tokens::Mapped(_) => 0,
        };
        let tokens = train.saturating_add(self.held_out.len());
        tokens.saturating_mul(size_of::<u32>())
    }

    /// Returns the held-out tokens of each thread of an evaluation on at most so many threads: whole windows.
    pub(super) fn pieces(&self, threads: usize) -> std::slice::Chunks<'_, u32> {
        let own = self.context - usize::from(self.begin.is_some());
        let windows = self.held_out.len().div_ceil(own);
        self.held_out
            .chunks(own * windows.div_ceil(threads.max(1)).max(1))
    }

    /// Returns the windows per epoch. An epoch of all windows begins at one of the first one's tokens; one of some
    /// windows ([`Corpus::select`]) always at the first token.
    pub fn windows(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.len() as u64,
            None => ((self.tokens.len() - 1) / self.context) as u64 - 1,
        }
    }

    /// Writes the inputs and targets of the window at a place in the whole run, from 0; both slices have one for each
    /// position. Only the seed and the place decide which window it is. O(context).
    pub fn window(&self, place: u64, inputs: &mut [u32], targets: &mut [u32]) {
        let (epoch, index) = (place / self.windows(), place % self.windows());
        let window = permuted(index, self.windows(), self.seed ^ epoch.rotate_left(32));
        let (offset, window) = match &self.kept {
            Some(_) => (0, self.numbered(window)),
            None => (
                counter(self.seed, OFFSET, epoch)[0] as usize % self.context,
                window,
            ),
        };
        let first = offset + window as usize * self.context;
        match self.begin {
            Some(begin) => {
                inputs[0] = begin;
                self.tokens.copy(first, &mut inputs[1..]);
                self.tokens.copy(first, targets);
            }
            None => {
                self.tokens.copy(first, inputs);
                self.tokens.copy(first + 1, targets);
            }
        }
    }
}

/// Returns the place of `index` in an order of 0..`count` for the seed: a Feistel network over the smallest even number
/// of bits, repeated until the result is below `count` (Black and Rogaway, *Ciphers with arbitrary finite domains*,
/// 2002).
pub(super) fn permuted(index: u64, count: u64, seed: u64) -> u64 {
    let half = (64 - count.saturating_sub(1).leading_zeros())
        .div_ceil(2)
        .max(1);
    let mask = (1 << half) - 1;
    let mut place = index;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..ROUNDS {
            let draw = u64::from(counter(seed, ORDER, round << 32 | right)[0]);
            (left, right) = (right, left ^ (draw & mask));
        }
        place = left << half | right;
        if place < count {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_takes_every_window_once() {
        for count in [1, 2, 3, 17, 64, 1000] {
            let mut seen: Vec<u64> = (0..count).map(|index| permuted(index, count, 7)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn windows_lie_within_the_text_and_targets_follow_inputs() {
        for begin in [None, Some(9999)] {
            let corpus = Corpus::new(
                Tokens::InMemory((0..101).collect()),
                Vec::new(),
                10,
                begin,
                3,
            )
            .unwrap();
            assert_eq!(corpus.windows(), 9);
            let (mut inputs, mut targets) = ([0; 10], [0; 10]);
            for place in 0..50 {
                corpus.window(place, &mut inputs, &mut targets);
                let first = begin.unwrap_or(targets[0].wrapping_sub(1));
                assert_eq!(inputs[0], first);
                assert_eq!(inputs[1..], targets[..9]);
            }
        }
    }

    #[test]
    fn a_short_text_is_refused() {
        let error =
            Corpus::new(Tokens::InMemory(vec![1; 20]), Vec::new(), 10, None, 0).unwrap_err();
        assert!(error.to_string().contains("20 tokens"), "{error}");
    }
}
