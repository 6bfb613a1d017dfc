//! Cuts text into the pieces that merges do not cross: the pre-tokenizers of byte-level vocabularies, without regular
//! expressions. The docs of each scanner show its expression. In it, `(?!\S)` makes the last of several spaces part
//! of the word after them. Source: llama.cpp's `src/unicode.cpp`.

use super::chars::Char;
use super::classes::Class;

/// The four scanners that most small models use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Scanner {
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// Each `\p{N}` is one piece; the text between them is cut like [`Scanner::Gpt2`].
    SmolLm,
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    Llama3,
    /// Like [`Scanner::Llama3`], with `\p{N}` for `\p{N}{1,3}`.
    Qwen2,
}

impl Scanner {
    /// Returns the pieces of a text, in order. Merges are learned inside pieces and do not cross them.
    ///
    /// ```
    /// use tercet_core::model::tokenizer::Scanner;
    ///
    /// let pieces: Vec<&[u8]> = Scanner::Gpt2.pieces(b"it's 42").collect();
    /// assert_eq!(pieces, [&b"it"[..], b"'s", b" 42"]);
    /// ```
    pub fn pieces(self, text: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        core::iter::from_fn(move || {
            let end = self.end(text, start);
            let piece = text.get(start..end).filter(|piece| !piece.is_empty());
            start = end;
            piece
        })
    }

    /// Returns the end of the piece that begins at `start`: after `start`, unless the text ends there. Linear in the
    /// piece.
    pub(super) fn end(self, text: &[u8], start: usize) -> usize {
        let from = text.get(start..).unwrap_or_default();
        let whole = Run {
            text: from,
            stops_at_numbers: self == Self::SmolLm,
        };
        let len = match self {
            Self::Gpt2 | Self::SmolLm => whole.gpt2(),
            Self::Llama3 => whole.llama3(3),
            Self::Qwen2 => whole.llama3(1),
        };
        start.saturating_add(len)
    }
}

/// Text from the start of a piece on.
#[derive(Clone, Copy)]
struct Run<'t> {
    text: &'t [u8],
    /// True if the text counts as ended at the start of a number.
    stops_at_numbers: bool,
}

impl Run<'_> {
    /// Returns the character at `at`, its class, and the start of the next.
    #[inline]
    fn at(&self, at: usize) -> Option<(Char, Class, usize)> {
        let char = Char::first(self.text.get(at..)?)?;
        let class = char.class();
        if self.stops_at_numbers && class == Class::Number {
            return None;
        }
        Some((char, class, at.saturating_add(char.len)))
    }

    /// Returns the end of at most `most` characters of `class`, from `at` on.
    fn run(&self, class: Class, mut at: usize, most: usize) -> usize {
        for _ in 0..most {
            match self.at(at) {
                Some((_, found, next)) if found == class => at = next,
                _ => break,
            }
        }
        at
    }

    /// Returns the length of `'s`, `'t`, `'m`, `'d`, `'re`, `'ve` or `'ll` at the start.
    fn contraction(&self, any_case: bool) -> Option<usize> {
        let fold = |byte: u8| {
            if any_case {
                byte.to_ascii_lowercase()
            } else {
                byte
            }
        };
        match *self.text {
            [b'\'', a, ..] if matches!(fold(a), b's' | b't' | b'm' | b'd') => Some(2),
            [b'\'', a, b, ..] if matches!(&[fold(a), fold(b)], b"re" | b"ve" | b"ll") => Some(3),
            _ => None,
        }
    }

    /// Returns the end of a run of spaces at the start. If there are several, the last one belongs to the word after
    /// them.
    fn spaces(&self) -> usize {
        let (mut end, mut last) = (0, 0);
        loop {
            match self.at(end) {
                Some((_, Class::Space, next)) => (last, end) = (end, next),
                Some(_) if last > 0 => return last,
                _ => return end,
            }
        }
    }

    fn gpt2(&self) -> usize {
        let Some((first, class, next)) = self.at(0) else {
            // The text's end, or a number alone.
            return Char::first(self.text).map_or(0, |char| char.len);
        };
        if let Some(len) = self.contraction(false) {
            return len;
        }
        let (class, start) = if first.point == u32::from(b' ') {
            match self.at(next) {
                Some((_, class, _)) => (class, next),
                None => (class, 0),
            }
        } else {
            (class, 0)
        };
        match class {
            Class::Space => self.spaces(),
            _ => self.run(class, start, usize::MAX),
        }
    }

    fn llama3(&self, digits: usize) -> usize {
        let Some((first, class, next)) = self.at(0) else {
            return 0;
        };
        if let Some(len) = self.contraction(true) {
            return len;
        }
        let breaks = |point: u32| point == u32::from(b'\r') || point == u32::from(b'\n');
        if class == Class::Letter {
            return self.run(Class::Letter, next, usize::MAX);
        }
        if class == Class::Number {
            return self.run(Class::Number, 0, digits);
        }
        let second = self.at(next).map(|(_, class, _)| class);
        if second == Some(Class::Letter) && !breaks(first.point) {
            return self.run(Class::Letter, next, usize::MAX);
        }
        if class == Class::Other {
            return self.breaks(self.run(Class::Other, next, usize::MAX));
        }
        if first.point == u32::from(b' ') && second == Some(Class::Other) {
            return self.breaks(self.run(Class::Other, next, usize::MAX));
        }
        // Spaces up to the last line break among them.
        let (mut end, mut broken) = (0, 0);
        while let Some((char, Class::Space, next)) = self.at(end) {
            end = next;
            if breaks(char.point) {
                broken = next;
            }
        }
        if broken > 0 { broken } else { self.spaces() }
    }

    /// Returns the end of the line breaks from `at` on.
    fn breaks(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let breaks = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        at.saturating_add(breaks.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn cut(scanner: Scanner, text: &str) -> Vec<&str> {
        let (mut pieces, mut start) = (Vec::new(), 0);
        while start < text.len() {
            let end = scanner.end(text.as_bytes(), start);
            assert!(end > start);
            pieces.push(&text[start..end]);
            start = end;
        }
        pieces
    }

    #[test]
    fn gpt_2_takes_one_space_along_and_keeps_numbers_whole() {
        let pieces = cut(Scanner::Gpt2, "Hello  world's 1234,  it'S ok?!  ");
        assert_eq!(
            pieces,
            [
                "Hello", " ", " world", "'s", " 1234", ",", " ", " it", "'", "S", " ok", "?!", "  "
            ]
        );
        assert_eq!(
            cut(Scanner::Gpt2, "a\n\n b\t c"),
            ["a", "\n\n", " b", "\t", " c"]
        );
        assert_eq!(
            cut(Scanner::Gpt2, "'ll 're've x'm"),
            ["'ll", " '", "re", "'ve", " x", "'m"]
        );
    }

    #[test]
    fn smollm_cuts_each_number_and_leaves_no_space_to_it() {
        assert_eq!(
            cut(Scanner::SmolLm, "a 12  3x½"),
            ["a", " ", "1", "2", "  ", "3", "x", "½"]
        );
        assert_eq!(cut(Scanner::SmolLm, "  b"), [" ", " b"]);
    }

    #[test]
    fn llama_3_takes_any_mark_along_and_numbers_by_threes() {
        let pieces = cut(
            Scanner::Llama3,
            "Don'T say:\"hi\" 12345 (x)\r\n\n  y  \n z!!\n",
        );
        let expected = [
            "Don", "'T", " say", ":\"", "hi", "\"", " ", "123", "45", " (", "x", ")\r\n\n", " ",
            " y", "  \n", " z", "!!\n",
        ];
        assert_eq!(pieces, expected);
        assert_eq!(
            cut(Scanner::Llama3, "\nab\u{a0}cd"),
            ["\n", "ab", "\u{a0}cd"]
        );
    }

    #[test]
    fn qwen_2_cuts_numbers_one_by_one() {
        assert_eq!(cut(Scanner::Qwen2, "a 12 b"), ["a", " ", "1", "2", " b"]);
    }

    #[test]
    fn a_text_that_ends_in_spaces_ends_in_one_piece() {
        for scanner in [
            Scanner::Gpt2,
            Scanner::SmolLm,
            Scanner::Llama3,
            Scanner::Qwen2,
        ] {
            assert_eq!(cut(scanner, "a   "), ["a", "   "]);
            assert_eq!(cut(scanner, " "), [" "]);
        }
    }

    #[test]
    fn bytes_that_are_no_characters_are_neither_letters_nor_spaces() {
        let text = b"a\xff\xffb";
        assert_eq!(Scanner::Gpt2.end(text, 0), 1);
        assert_eq!(Scanner::Gpt2.end(text, 1), 3);
        // Any mark belongs to the letters after it.
        assert_eq!(Scanner::Llama3.end(text, 2), 4);
    }

    #[test]
    fn long_runs_are_one_piece() {
        let text: String = "ab ".repeat(3) + &"x".repeat(100_000);
        for scanner in [Scanner::Gpt2, Scanner::Llama3] {
            assert_eq!(
                cut(scanner, &text).last().map(|piece| piece.len()),
                Some(100_001)
            );
        }
    }
}
