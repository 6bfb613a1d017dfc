//! Special tokens in a text, which are cut out before any other step.
//!
//! As in llama.cpp, longer tokens are cut out first, at any place; shorter ones are found in the remaining text. (Of
//! equal lengths, the leftmost is first; llama.cpp uses its sort's order for them.)

use super::{Tokenizer, TokenizerError};

/// Number of bytes of the longest special token.
const LONGEST: usize = 512;

/// Lengths, first bytes and last bytes of a set of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Specials {
    /// Bit b of word w: a token begins with byte 32 w + b.
    firsts: [u32; 8],
    /// The same for last bytes.
    lasts: [u32; 8],
    /// Bit b of word w: a token has 32 w + b + 1 bytes.
    lengths: [u32; LONGEST / 32],
}

impl Specials {
    /// Number of words of [`Specials::words`].
    pub(super) const WORDS: usize = 8 + 8 + LONGEST / 32;

    /// Returns all bits.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> {
        let ends = self.firsts.into_iter().chain(self.lasts);
        ends.chain(self.lengths)
    }

    /// Returns the set with these words, in the order of [`Specials::words`].
    pub(super) fn from_words(next: &mut impl FnMut() -> u32) -> Self {
        Self {
            firsts: core::array::from_fn(|_| next()),
            lasts: core::array::from_fn(|_| next()),
            lengths: core::array::from_fn(|_| next()),
        }
    }

    /// Adds a token. One without text is never found.
    pub(super) fn add(&mut self, id: u32, text: &[u8]) -> Result<(), TokenizerError> {
        let len = text.len();
        let (Some(&first), Some(&last)) = (text.first(), text.last()) else {
            return Ok(());
        };
        if len > LONGEST {
            return Err(TokenizerError::SpecialLength { id, len });
        }
        set(&mut self.lengths, len.saturating_sub(1));
        set(&mut self.firsts, first.into());
        set(&mut self.lasts, last.into());
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lengths == [0; LONGEST / 32]
    }

    fn begins(&self, byte: u8) -> bool {
        bit(&self.firsts, usize::from(byte))
    }

    /// Returns the lengths, longest first.
    fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        let longest_first = (0..LONGEST).rev();
        longest_first
            .filter(|&last| bit(&self.lengths, last))
            .map(|last| last.saturating_add(1))
    }
}

fn bit(words: &[u32], at: usize) -> bool {
    words
        .get(at / 32)
        .is_some_and(|word| word >> (at % 32) & 1 == 1)
}

fn set(words: &mut [u32], at: usize) {
    if let Some(word) = words.get_mut(at / 32) {
        *word |= 1 << (at % 32);
    }
}

/// Places of special tokens in a text: one bit for each byte that begins one, and one bit for each byte inside one.
#[derive(Debug)]
pub(super) struct Marks<'s> {
    starts: &'s mut [u32],
    covered: &'s mut [u32],
}

/// Returns the number of words of scratch for the marks of a text.
pub(super) const fn marks_len(bytes: usize) -> usize {
    bytes.div_ceil(32).saturating_mul(2)
}

impl<'s> Marks<'s> {
    /// Clears all marks. `words` has [`marks_len`] elements, or none for a text without special tokens.
    pub(super) fn new(words: &'s mut [u32]) -> Self {
        words.fill(0);
        let half = words.len() / 2;
        let (starts, covered) = words.split_at_mut_checked(half).unwrap_or_default();
        Self { starts, covered }
    }

    /// Returns the number of words of the marks.
    pub(super) const fn len(&self) -> usize {
        self.starts.len().saturating_add(self.covered.len())
    }

    /// Finds user-defined tokens in `text`, and with `special` also control tokens and the unknown token. Time: the
    /// text times the number of different lengths, plus the length for each place with a matching first byte.
    pub(super) fn find(&mut self, tokenizer: &Tokenizer<'_>, special: bool, text: &[u8]) {
        let specials = tokenizer.specials(special);
        for len in specials.lengths() {
            let mut at = 0_usize;
            while let Some(from) = text.get(at..).filter(|from| !from.is_empty()) {
                let Some(skipped) = from.iter().position(|&byte| specials.begins(byte)) else {
                    break;
                };
                at = at.saturating_add(skipped);
                if self.fits(tokenizer, special, text, at, len) {
                    set(self.starts, at);
                    let end = at.saturating_add(len);
                    (at..end).for_each(|at| set(self.covered, at));
                    at = end;
                } else {
                    at = at.saturating_add(1);
                }
            }
        }
    }

    /// Returns true if the text at `at` is a token of `len` bytes, at a place that is not used yet.
    fn fits(
        &self,
        tokenizer: &Tokenizer<'_>,
        special: bool,
        text: &[u8],
        at: usize,
        len: usize,
    ) -> bool {
        let end = at.saturating_add(len);
        // The tokens found so far are not shorter: one that overlaps covers the first or the last byte.
        let last = end.saturating_sub(1);
        let lasts = &tokenizer.specials(special).lasts;
        let free = !bit(self.covered, at) && !bit(self.covered, last);
        // Avoids hashing most texts that begin like a token.
        let ends = text.get(last).is_some_and(|&byte| bit(lasts, byte.into()));
        free && ends
            && text.get(at..end).is_some_and(|token| {
                tokenizer
                    .token(token)
                    .is_some_and(|id| tokenizer.is_cut(id, special))
            })
    }

    /// Returns the end of the part of a text that begins at `at`, and true if it is a special token.
    pub(super) fn part(&self, at: usize, len: usize) -> (usize, bool) {
        if !bit(self.starts, at) {
            return (self.next_start(at, len), false);
        }
        let mut end = at.saturating_add(1);
        while end < len && bit(self.covered, end) && !bit(self.starts, end) {
            end = end.saturating_add(1);
        }
        (end, true)
    }

    /// Returns the first byte from `at` on that begins a special token, or `len`.
    fn next_start(&self, at: usize, len: usize) -> usize {
        let words = self.starts.get(at / 32..).unwrap_or_default();
        let mut first = at / 32 * 32;
        let mut mask = u32::MAX << (at % 32);
        for word in words {
            let found = word & mask;
            if found != 0 {
                return first.saturating_add(found.trailing_zeros() as usize);
            }
            (first, mask) = (first.saturating_add(32), u32::MAX);
        }
        len
    }
}
