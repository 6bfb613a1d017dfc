//! The alphabet of byte-level vocabularies: GPT-2's, with one letter per byte.
//!
//! A printable byte of Latin-1 is its own letter; the other 68 bytes, in order, are U+0100 to U+0143.
//! Source: `bytes_to_unicode` in GPT-2's encoder.py.

/// Returns the code point of a byte's letter.
pub(super) const fn letter(byte: u8) -> u16 {
    match byte {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => byte as u16,
        0..=0x20 => 0x100 | byte as u16,
        // Bytes 0x7F to 0xA0 come after 33 others, 0xAD after 67. None of these can wrap.
        0x7F..=0xA0 => (0x121 - 0x7F_u16).wrapping_add(byte as u16),
        0xAD => 0x143,
    }
}

/// Returns the byte of a code point, if it is a letter.
pub(super) const fn byte(point: u16) -> Option<u8> {
    Some(match point {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => point as u8,
        0x100..=0x120 => (point & 0xFF) as u8,
        0x121..=0x142 => point.wrapping_sub(0x121 - 0x7F) as u8,
        0x143 => 0xAD,
        _ => return None,
    })
}

/// The letters of `bytes`, in UTF-8.
#[derive(Clone, Debug)]
pub(super) struct Letters<I> {
    bytes: I,
    second: Option<u8>,
}

impl<I> Letters<I> {
    pub(super) const fn new(bytes: I) -> Self {
        Self {
            bytes,
            second: None,
        }
    }
}

impl<I: Iterator<Item = u8>> Iterator for Letters<I> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        let point = letter(self.bytes.next()?);
        if point < 0x80 {
            return Some(point as u8);
        }
        self.second = Some(0x80 | (point & 0x3F) as u8);
        Some(0xC0 | (point >> 6) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn every_byte_has_a_letter_of_its_own_that_leads_back() {
        let letters: BTreeSet<u16> = (0..=255).map(letter).collect();
        assert_eq!(letters.len(), 256);
        assert!((0..=255).all(|each| byte(letter(each)) == Some(each)));
        assert!((0..=u16::MAX).all(|point| letters.contains(&point) == byte(point).is_some()));
    }

    #[test]
    fn letters_are_gpt_2_s() {
        let written: Vec<u8> = Letters::new(b" a\n\x7f\xa0\xad\xff".iter().copied()).collect();
        assert_eq!(String::from_utf8(written).unwrap(), "ĠaĊġłŃÿ");
    }
}
