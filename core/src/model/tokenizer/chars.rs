//! Bytes read as characters, as llama.cpp reads them.

use super::classes::{Class, class};

/// What stands for a byte that begins no character.
const REPLACEMENT: u32 = 0xFFFD;

/// Whether a byte-level vocabulary may lose bytes of a text. (SPM keeps all.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Loss {
    /// As in llama.cpp: a byte that begins no character becomes U+FFFD, an overlong character its shortest form, and a byte that
    /// no token stands for is left out. Decoding cannot undo any of these.
    #[default]
    Allowed,
    /// Every byte stays, so that decoding gives the text back; one that no token stands for is an error. Pieces are cut as where
    /// loss is allowed.
    Refused,
}

/// A character of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Char {
    /// The code point; [`REPLACEMENT`] for a byte that begins no character.
    pub(super) point: u32,
    /// Bytes that it takes, 1 to 4.
    pub(super) len: usize,
    whole: bool,
}

impl Char {
    /// The first character of `text`; `None` at its end.
    ///
    /// As llama.cpp: surrogates and overlong forms are characters, and so are numbers up to 2²¹.
    #[inline]
    pub(super) fn first(text: &[u8]) -> Option<Self> {
        let (&lead, rest) = text.split_first()?;
        if lead < 0x80 {
            return Some(Self {
                point: lead.into(),
                len: 1,
                whole: true,
            });
        }
        let (more, bits) = match lead {
            0xC0..0xE0 => (1, lead & 0x1F),
            0xE0..0xF0 => (2, lead & 0x0F),
            0xF0..0xF8 => (3, lead & 0x07),
            _ => (0, 0),
        };
        let mut point = u32::from(bits);
        let follow = rest.get(..more).unwrap_or_default();
        for &byte in follow {
            if byte & 0xC0 != 0x80 {
                return Some(Self::replaced());
            }
            point = point << 6 | u32::from(byte & 0x3F);
        }
        if follow.is_empty() {
            return Some(Self::replaced());
        }
        Some(Self {
            point,
            len: more.saturating_add(1),
            whole: true,
        })
    }

    const fn replaced() -> Self {
        Self {
            point: REPLACEMENT,
            len: 1,
            whole: false,
        }
    }

    pub(super) fn class(&self) -> Class {
        class(self.point)
    }

    /// Whether its bytes are replaced by those of [`Char::shortest`]. Beyond Unicode llama.cpp ends the program;
    /// here such bytes stay.
    fn changes(&self) -> bool {
        let shortest = match self.point {
            0..0x80 => 1,
            0x80..0x800 => 2,
            0x800..0x1_0000 => 3,
            _ => 4,
        };
        !self.whole || self.len != shortest
    }

    /// Its bytes in the shortest form, and how many they are.
    fn shortest(&self) -> ([u8; 4], u8) {
        let continued = |shift: u32| (0x80 | (self.point >> shift & 0x3F)) as u8;
        match self.point {
            0..0x80 => ([self.point as u8, 0, 0, 0], 1),
            0x80..0x800 => ([0xC0 | (self.point >> 6) as u8, continued(0), 0, 0], 2),
            _ => (
                [
                    0xE0 | (self.point >> 12) as u8,
                    continued(6),
                    continued(0),
                    0,
                ],
                3,
            ),
        }
    }
}

/// The bytes of a text with what is not UTF-8 treated as asked.
#[derive(Clone, Debug)]
pub(super) struct Bytes<'t> {
    rest: &'t [u8],
    /// Bytes at the front of `rest` that stay.
    kept: usize,
    /// Bytes that stand for what was there, and how many of them are left; the last ones of three.
    instead: [u8; 4],
    at: u8,
    end: u8,
}

impl<'t> Bytes<'t> {
    pub(super) fn new(text: &'t [u8], loss: Loss) -> Self {
        Self {
            rest: text,
            kept: match loss {
                Loss::Allowed => 0,
                Loss::Refused => text.len(),
            },
            instead: [0; 4],
            at: 0,
            end: 0,
        }
    }
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.at < self.end {
            let byte = self.instead.get(usize::from(self.at)).copied();
            self.at = self.at.saturating_add(1);
            return byte;
        }
        let (&byte, rest) = self.rest.split_first()?;
        if self.kept == 0 && byte >= 0x80 {
            let char = Char::first(self.rest)?;
            if char.changes() {
                self.rest = self.rest.get(char.len..).unwrap_or_default();
                (self.instead, self.end) = char.shortest();
                self.at = 1;
                return self.instead.first().copied();
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
    fn overlong_characters_become_short_surrogates_and_numbers_beyond_unicode_stay() {
        assert_eq!(replaced(b"\xc0\x80"), b"\0");
        assert_eq!(replaced(b"\xe0\x82\xa0"), b"\xc2\xa0");
        assert_eq!(replaced(b"\xf0\x80\x80\xa0"), b" ");
        assert_eq!(replaced(b"\xf0\x82\x82\xac"), "€".as_bytes());
        assert_eq!(replaced(b"\xed\xa0\x80"), b"\xed\xa0\x80");
        assert_eq!(replaced(b"\xf4\x90\x80\x80x"), b"\xf4\x90\x80\x80x");
    }

    #[test]
    fn kept_bytes_are_all_kept() {
        let text: Vec<u8> = (0..=255).rev().collect();
        assert!(Bytes::new(&text, Loss::Refused).eq(text.iter().copied()));
    }
}
