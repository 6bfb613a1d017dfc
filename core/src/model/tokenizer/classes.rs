//! The classes of characters that pre-tokenizers distinguish.

use super::classes_table::STARTS;

/// Class of a code point for a pre-tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// None of the others: marks, punctuation, symbols, controls, unassigned code points.
    Other,
    /// General category L.
    Letter,
    /// General category N.
    Number,
    /// The property White_Space.
    Space,
}

/// Returns the class of a code point in Unicode 15.1, as in llama.cpp; `Other` for a number beyond Unicode.
pub(super) fn class(point: u32) -> Class {
    if point < 0x80 {
        return match point as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Number,
            b' ' | 9..=13 => Class::Space,
            _ => Class::Other,
        };
    }
    if point > 0x10_FFFF {
        return Class::Other;
    }
    let after = STARTS.partition_point(|start| start >> 2 <= point);
    match after.checked_sub(1).and_then(|at| STARTS.get(at)) {
        Some(start) => match start & 3 {
            1 => Class::Letter,
            2 => Class::Number,
            3 => Class::Space,
            _ => Class::Other,
        },
        None => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_table_agrees_with_what_is_written_out_for_ascii() {
        for point in 0..0x80 {
            let after = STARTS.partition_point(|start| start >> 2 <= point);
            assert_eq!(STARTS[after - 1] & 3, class(point) as u32, "{point:#x}");
        }
    }

    #[test]
    fn ranges_ascend_and_neighbours_differ() {
        assert_eq!(STARTS[0] >> 2, 0);
        for pair in STARTS.windows(2) {
            assert!(pair[0] >> 2 < pair[1] >> 2 && pair[0] & 3 != pair[1] & 3);
        }
    }

    #[test]
    fn classes_of_known_characters() {
        let classes: Vec<Class> = "é中Ⅷ٣½\u{a0}\u{3000}\u{85}\u{301}—🦀\u{180e}"
            .chars()
            .map(|char| class(char.into()))
            .collect();
        use Class::{Letter, Number, Other, Space};
        let expected = [
            Letter, Letter, Number, Number, Number, Space, Space, Space, Other, Other, Other, Other,
        ];
        assert_eq!(classes, expected);
        // A letter since Unicode 15.1, a letter only since 16.0, and numbers that are not code points.
        assert_eq!(class(0x2_EBF0), Letter);
        assert_eq!(class(0x1_05C0), Other);
        assert_eq!(
            (class(0xD800), class(0x11_0000), class(u32::MAX)),
            (Other, Other, Other)
        );
    }

    #[test]
    fn white_space_is_what_the_standard_library_has() {
        for char in char::MIN..=char::MAX {
            assert_eq!(
                class(char.into()) == Class::Space,
                char.is_whitespace(),
                "{char:?}"
            );
        }
    }
}
