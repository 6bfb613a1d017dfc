//! Reads bytes as characters, as llama.cpp does.

use super::classes::{Class, class};

/// Replacement for a byte that begins no character.
const REPLACEMENT: u32 = 0xFFFD;

/// Permission for a byte-level vocabulary to lose bytes of a text. (SPM keeps all.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Loss {
    /// As in llama.cpp: a byte that begins no character becomes U+FFFD, and a byte without a token is left out.
    /// Decoding can undo neither.
    #[default]
    Allowed,
    /// Every byte is kept, so that decoding returns the text; a byte without a token is an error. Pieces are the same
    /// as when loss is allowed.
    Refused,
}

/// A character of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Char {
    /// The code point; [`REPLACEMENT`] for a byte that begins no character.
    pub(super) point: u32,
    /// Number of its bytes, 1 to 4.
    pub(super) len: usize,
}

impl Char {
    /// Returns the first character of `text`; `None` at its end.
    ///
    /// As in llama.cpp 0.7: surrogates are characters; overlong forms and numbers beyond Unicode are not. (In earlier
    /// versions, overlong forms were characters, and such numbers ended the program.)
    #[inline]
    pub(super) fn first(text: &[u8]) -> Option<Self> {
        let (&lead, rest) = text.split_first()?;
        if lead < 0x80 {
            return Some(Self {
                point: lead.into(),
                len: 1,
            });
        }
        let (more, bits, least) = match lead {
            0xC0..0xE0 => (1, lead & 0x1F, 0x80),
            0xE0..0xF0 => (2, lead & 0x0F, 0x800),
            0xF0..0xF8 => (3, lead & 0x07, 0x1_0000),
            _ => return Some(Self::replaced()),
        };
        let mut point = u32::from(bits);
        let follow = rest.get(..more).unwrap_or_default();
        for &byte in follow {
            if byte & 0xC0 != 0x80 {
                return Some(Self::replaced());
            }
            point = point << 6 | u32::from(byte & 0x3F);
        }
        if follow.is_empty() || !(least..=0x10_FFFF).contains(&point) {
            return Some(Self::replaced());
        }
        let len = more.saturating_add(1);
        Some(Self { point, len })
    }

    const fn replaced() -> Self {
        Self {
            point: REPLACEMENT,
            len: 1,
        }
    }

    pub(super) fn class(&self) -> Class {
        class(self.point)
    }
}

/// The bytes of a text, with bytes that are not UTF-8 handled as requested.
#[derive(Clone, Debug)]
pub(super) struct Bytes<'t> {
    rest: &'t [u8],
    /// Bytes at the front of `rest` that are kept.
    kept: usize,
    /// Remaining bytes of the replacement character.
    instead: &'static [u8],
}

impl<'t> Bytes<'t> {
    pub(super) fn new(text: &'t [u8], loss: Loss) -> Self {
        Self {
            rest: text,
            kept: match loss {
                Loss::Allowed => 0,
                Loss::Refused => text.len(),
            },
            instead: &[],
        }
    }
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if let Some((&byte, rest)) = self.instead.split_first() {
            self.instead = rest;
            return Some(byte);
        }
        let (&byte, rest) = self.rest.split_first()?;
        if self.kept == 0 && byte >= 0x80 {
            let char = Char::first(self.rest)?;
            // A character of one byte is ASCII.
            if char.len == 1 {
                (self.rest, self.instead) = (rest, &[0xBF, 0xBD]);
                return Some(0xEF);
            }
            self.kept = char.len;
        }
        self.kept = self.kept.saturating_sub(1);
        self.rest = rest;
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn replaced(text: &[u8]) -> Vec<u8> {
        Bytes::new(text, Loss::Allowed).collect()
    }

    #[test]
    fn utf8_stays_as_it_is() {
        let text = "aé中🦀\u{0}\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}";
        assert_eq!(replaced(text.as_bytes()), text.as_bytes());
    }

    #[test]
    fn a_byte_that_begins_no_character_is_replaced_and_the_next_read_anew() {
        assert_eq!(replaced(b"\xff"), "\u{fffd}".as_bytes());
        assert_eq!(replaced(b"\x80a"), "\u{fffd}a".as_bytes());
        assert_eq!(replaced(b"\xc3("), "\u{fffd}(".as_bytes());
        assert_eq!(replaced(b"\xe2\x82"), "\u{fffd}\u{fffd}".as_bytes());
        assert_eq!(
            replaced(b"\xf8\x88\x80"),
            "\u{fffd}\u{fffd}\u{fffd}".as_bytes()
        );
    }

    #[test]
    fn overlong_forms_and_numbers_beyond_unicode_are_no_characters_surrogates_are() {
        for text in [
            &b"\xc0\x80"[..],
            b"\xc1\xbf",
            b"\xe0\x9f\xbf",
            b"\xf0\x8f\xbf\xbf",
            b"\xf4\x90\x80\x80",
        ] {
            assert_eq!(
                replaced(text),
                "\u{fffd}".repeat(text.len()).as_bytes(),
                "{text:x?}"
            );
        }
        assert_eq!(replaced(b"\xed\xa0\x80"), b"\xed\xa0\x80");
    }

    #[test]
    fn kept_bytes_are_all_kept() {
        let text: Vec<u8> = (0..=255).rev().collect();
        assert!(Bytes::new(&text, Loss::Refused).eq(text.iter().copied()));
    }
}
