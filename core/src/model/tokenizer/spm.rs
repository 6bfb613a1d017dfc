//! SPM texts: a sequence of characters, in which the pair whose joined text is the token with the highest score
//! merges first.
//!
//! Source: `llm_tokenizer_spm_session` in llama.cpp's `src/llama-vocab.cpp`.

use super::Tokenizer;
use super::pieces::SPACE;
use super::symbols::{NEVER, Rules};

/// A text without special tokens, with U+2581 for spaces. Place 0 is the space before it, if there is one; the text's
/// bytes follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'t> {
    bytes: &'t [u8],
    prefix: u32,
}

impl<'t> Text<'t> {
    pub(super) fn new(bytes: &'t [u8], prefix: bool) -> Self {
        Self {
            bytes,
            prefix: prefix.into(),
        }
    }

    /// Returns the place after the last; [`super::Tokenizer::encode`] keeps texts below 4 GiB.
    pub(super) const fn end(&self) -> u32 {
        (self.bytes.len() as u32).saturating_add(self.prefix)
    }

    /// Returns the bytes of a part, escaped.
    #[inline]
    pub(super) fn part(&self, from: u32, to: u32) -> Escaped<'t> {
        let start = from.saturating_sub(self.prefix) as usize;
        let end = to.saturating_sub(self.prefix) as usize;
        Escaped {
            space: 0,
            prefix: from < self.prefix,
            rest: self.bytes.get(start..end).unwrap_or_default(),
        }
    }

    /// Returns the end of the character at `from`, from its first byte only.
    ///
    /// llama.cpp counts escaped bytes, so it may split a space that occurs where a character should continue. No
    /// token begins or ends inside a character, so none consists of such parts: an unsplit space gives the same
    /// tokens.
    pub(super) fn char_end(&self, from: u32) -> u32 {
        if from < self.prefix {
            return from.saturating_add(1);
        }
        let start = from.saturating_sub(self.prefix) as usize;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut needed = match rest.first() {
            Some(0xC0..0xE0) => 2_u32,
            Some(0xE0..0xF0) => 3,
            Some(0xF0..) => 4,
            _ => 1,
        };
        let mut end = from;
        for &byte in rest {
            needed = needed.saturating_sub(if byte == b' ' { 3 } else { 1 });
            end = end.saturating_add(1);
            if needed == 0 {
                break;
            }
        }
        end
    }
}

/// Bytes with U+2581 for each space.
#[derive(Clone, Debug)]
pub(super) struct Escaped<'t> {
    /// Remaining bytes of a space.
    space: u8,
    prefix: bool,
    rest: &'t [u8],
}

impl Iterator for Escaped<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        let [first, second, third] = SPACE;
        if self.space > 0 {
            self.space = self.space.wrapping_sub(1);
            return Some(if self.space > 0 { second } else { third });
        }
        if core::mem::take(&mut self.prefix) {
            self.space = 2;
            return Some(first);
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        if byte == b' ' {
            self.space = 2;
            return Some(first);
        }
        Some(byte)
    }
}

/// Merge rules for symbols that are the starts of characters.
#[derive(Debug)]
pub(super) struct Scores<'a, 't> {
    pub(super) tokenizer: Tokenizer<'a>,
    pub(super) text: Text<'t>,
}

impl Rules for Scores<'_, '_> {
    fn key(&self, left: u32, _: u32, after: u32) -> u32 {
        let token = self.tokenizer.find(self.text.part(left, after));
        token.map_or(NEVER, |id| {
            key(self.tokenizer.pieces().score(id).unwrap_or(0.0))
        })
    }

    fn merged(&self, left: u32, _: u32) -> u32 {
        left
    }
}

/// Returns a number that falls as the score rises. Never [`NEVER`], which would be a NaN.
fn key(score: f32) -> u32 {
    // Converts −0 to 0, which is equal.
    let bits = (score + 0.0).to_bits();
    match bits >> 31 {
        0 => bits ^ 0x7FFF_FFFF,
        _ => bits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn keys_fall_as_scores_rise() {
        let scores = [
            f32::NEG_INFINITY,
            -1e30,
            -2.0,
            -1e-40,
            0.0,
            1e-40,
            1.5,
            f32::MAX,
            f32::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(key(pair[0]) > key(pair[1]), "{pair:?}");
        }
        assert_eq!(key(-0.0), key(0.0));
        assert_ne!(key(f32::NEG_INFINITY), NEVER);
    }

    #[test]
    fn spaces_are_escaped_and_one_is_put_before() {
        let text = Text::new(b"a b ", true);
        let all: Vec<u8> = text.part(0, text.end()).collect();
        assert_eq!(all, "▁a▁b▁".as_bytes());
        let inner: Vec<u8> = text.part(2, 4).collect();
        assert_eq!(inner, "▁b".as_bytes());
    }

    #[test]
    fn characters_end_where_their_first_byte_says() {
        let text = Text::new("é🦀x".as_bytes(), true);
        assert_eq!([0, 1, 3, 7].map(|from| text.char_end(from)), [1, 3, 7, 8]);
        // Cut short by the text's end, and by a space, which has three bytes.
        assert_eq!(Text::new(b"\xf0\x9f", false).char_end(0), 2);
        assert_eq!(Text::new(b"\xf0 abc", false).char_end(0), 2);
        assert_eq!(Text::new(b"\xe2a bc", false).char_end(0), 3);
        assert_eq!(Text::new(b"\x80\x80", false).char_end(0), 1);
    }
}
