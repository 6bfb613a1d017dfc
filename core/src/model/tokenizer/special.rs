//! Special tokens in a text: cut out before anything else is done to it.
//!
//! As in llama.cpp, longer tokens are cut first, wherever they stand; a shorter one is found in what is left.
//! (Of equal lengths the leftmost is first; llama.cpp's order among these is its sort's.)

use super::{Tokenizer, TokenizerError};

/// Bytes of the longest special token.
const LONGEST: usize = 512;

/// Lengths, first and last bytes of a set of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Specials {
    /// Bit b of word w: a token begins with byte 32 w + b.
    firsts: [u32; 8],
    /// The same of last bytes.
    lasts: [u32; 8],
    /// Bit b of word w: a token has 32 w + b + 1 bytes.
    lengths: [u32; LONGEST / 32],
}

impl Specials {
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

    /// The lengths, the longest first.
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

/// Where special tokens stand in a text: a bit for each byte that begins one, and a bit for each that one covers.
#[derive(Debug)]
pub(super) struct Marks<'s> {
    starts: &'s mut [u32],
    covered: &'s mut [u32],
}

/// Words of scratch that the marks of a text take.
pub(super) const fn marks_len(bytes: usize) -> usize {
    bytes.div_ceil(32).saturating_mul(2)
}

impl<'s> Marks<'s> {
    /// No mark anywhere; `words` are those of [`marks_len`], or none for a text without special tokens.
    pub(super) fn new(words: &'s mut [u32]) -> Self {
        words.fill(0);
        let half = words.len() / 2;
        let (starts, covered) = words.split_at_mut_checked(half).unwrap_or_default();
        Self { starts, covered }
    }

    /// Words that the marks take.
    pub(super) const fn len(&self) -> usize {
        self.starts.len().saturating_add(self.covered.len())
    }

    /// Finds user-defined tokens, and with `special` control tokens and the unknown token, in `text`. Time: the text,
    /// times the number of different lengths, plus the length for each place that a first byte stands at.
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

    /// Whether a token of `len` bytes stands at `at` where none is yet.
    fn fits(
        &self,
        tokenizer: &Tokenizer<'_>,
        special: bool,
        text: &[u8],
        at: usize,
        len: usize,
    ) -> bool {
        let end = at.saturating_add(len);
        // Those that are there are no shorter: one that overlaps covers the first or the last byte.
        let last = end.saturating_sub(1);
        let lasts = &tokenizer.specials(special).lasts;
        let free = !bit(self.covered, at) && !bit(self.covered, last);
        // Spares hashing most of what begins as a token does.
        let ends = text.get(last).is_some_and(|&byte| bit(lasts, byte.into()));
        free && ends
            && text.get(at..end).is_some_and(|token| {
                tokenizer
                    .token(token)
                    .is_some_and(|id| tokenizer.is_cut(id, special))
            })
    }

    /// The end of the part of a text that begins at `at`, and whether it is a special token.
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

    /// The first byte from `at` on that begins a special token, or `len`.
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
