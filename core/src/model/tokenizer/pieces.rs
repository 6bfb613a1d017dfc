//! Tokens back to bytes.

use super::ends::is_end;
use super::letters;
use super::metadata::string;
use super::vocabulary::byte_of;
use super::{Method, TokenKind, TokenizerError, Vocabulary};

/// The sign that stands for a space in SPM vocabularies: U+2581.
pub(super) const SPACE: [u8; 3] = [0xE2, 0x96, 0x81];

/// What becomes of control tokens and the unknown token in decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Specials {
    /// They are nothing.
    #[default]
    Hidden,
    /// Their texts, as they stand in the vocabulary.
    Shown,
}

/// The texts of a vocabulary: what decoding needs, in one element of index a token, or fewer.
///
/// Pieces are those of llama.cpp's `llama_token_to_piece`. Its `llama_detokenize` then drops some spaces before
/// punctuation where the pre-tokenizer asks for it; decoding here gives back what was encoded.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    vocabulary: &'a Vocabulary,
    file: &'a [u8],
    /// Where the texts of every so many-th token begin.
    offsets: &'a [u32],
    stride: u32,
}

impl<'a> Pieces<'a> {
    /// Fills `index` with where tokens' texts begin in `file`, the bytes that the vocabulary was read from (or those before the tensors' data). It has
    /// [`Vocabulary::pieces_index_len`] elements, one a token; with fewer, 1 at least, texts between those that it has room for are looked for, in O(tokens
    /// an element).
    ///
    /// # Errors
    /// [`TokenizerError::Index`], [`TokenizerError::File`].
    // A frame of its own: a program's main loop would keep all of it.
    #[inline(never)]
    pub fn new(
        vocabulary: &'a Vocabulary,
        file: &'a [u8],
        index: &'a mut [u32],
    ) -> Result<Self, TokenizerError> {
        let expected = vocabulary.pieces_index_len();
        let found = index.len();
        if found == 0 || found > expected {
            return Err(TokenizerError::Index { expected, found });
        }
        Self::fill(vocabulary, file, index)?;
        Ok(Self::attach(vocabulary, file, index))
    }

    /// Writes the offsets.
    pub(super) fn fill(
        vocabulary: &Vocabulary,
        file: &[u8],
        offsets: &mut [u32],
    ) -> Result<(), TokenizerError> {
        let texts = vocabulary.texts(file);
        let stride = Self::stride(vocabulary, offsets) as usize;
        let (mut offset, mut slots) = (0, offsets.iter_mut());
        for token in 0..vocabulary.pieces_index_len() {
            if token.is_multiple_of(stride)
                && let Some(slot) = slots.next()
            {
                // The whole array is below 4 GiB.
                *slot = offset as u32;
            }
            (_, offset) = string(texts, offset).ok_or(TokenizerError::File)?;
        }
        Ok(())
    }

    /// Joins offsets that were filled before to their file.
    pub(super) const fn attach(
        vocabulary: &'a Vocabulary,
        file: &'a [u8],
        offsets: &'a [u32],
    ) -> Self {
        Self {
            vocabulary,
            file,
            offsets,
            stride: Self::stride(vocabulary, offsets),
        }
    }

    /// Tokens an element, at least 1.
    const fn stride(vocabulary: &Vocabulary, offsets: &[u32]) -> u32 {
        let len = if offsets.is_empty() { 1 } else { offsets.len() };
        let stride = vocabulary.pieces_index_len().div_ceil(len) as u32;
        if stride == 0 { 1 } else { stride }
    }

    /// What the file says of its tokenizer.
    pub const fn vocabulary(&self) -> &'a Vocabulary {
        self.vocabulary
    }

    /// A token's text as the vocabulary has it, in UTF-8; `None` for an id that no token has.
    #[inline]
    pub fn text(&self, id: u32) -> Option<&'a [u8]> {
        if id >= self.vocabulary.tokens() {
            return None;
        }
        let texts = self.vocabulary.texts(self.file);
        let place = id.checked_div(self.stride)?;
        let offset = *self.offsets.get(place as usize)?;
        let (mut text, mut next) = string(texts, offset as usize)?;
        for _ in place.wrapping_mul(self.stride)..id {
            (text, next) = string(texts, next)?;
        }
        Some(text)
    }

    /// A token's type. Tokens whose texts llama.cpp knows to end a text are control tokens whatever the file says.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        Some(self.vocabulary.kind(self.file, id, self.text(id)?))
    }

    /// A token's score; 0 where the file has none.
    pub fn score(&self, id: u32) -> Option<f32> {
        self.text(id).map(|_| self.vocabulary.score(self.file, id))
    }

    /// Whether generation ends with the token: EOS, the ends of turn and message, and what llama.cpp knows by its text.
    pub fn is_end(&self, id: u32) -> bool {
        let ends = [
            self.vocabulary.eos(),
            self.vocabulary.eot(),
            self.vocabulary.eom(),
        ];
        ends.contains(&Some(id)) || self.text(id).is_some_and(is_end)
    }

    /// The bytes that a token stands for. They need not be whole characters.
    ///
    /// # Errors
    /// [`TokenizerError::Token`].
    pub fn piece(&self, id: u32, specials: Specials) -> Result<Piece<'a>, TokenizerError> {
        let tokens = self.vocabulary.tokens();
        let text = self.text(id).ok_or(TokenizerError::Token { id, tokens })?;
        let kind = self.vocabulary.kind(self.file, id, text);
        let how = match (kind, self.vocabulary.method()) {
            (TokenKind::Control | TokenKind::Unknown, _) if specials == Specials::Hidden => {
                How::Nothing
            }
            (TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined, _) => How::Plain,
            (TokenKind::Byte, _) => byte_of(text).map_or(How::Nothing, How::Byte),
            (TokenKind::Normal, Method::Spm) => How::Spaces,
            (TokenKind::Normal, Method::Bpe) => How::Letters,
            (TokenKind::Unused | TokenKind::Undefined, _) => How::Nothing,
        };
        Ok(Piece { text, how })
    }
}

/// How a text stands for bytes.
#[derive(Clone, Copy, Debug)]
enum How {
    Nothing,
    Plain,
    Byte(u8),
    Spaces,
    Letters,
}

/// The bytes of a token, one after the other.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    text: &'a [u8],
    how: How,
}

impl Piece<'_> {
    /// Leaves out a space that it begins with.
    pub(super) fn without_space(self) -> Self {
        let mut rest = self.clone();
        if rest.next() == Some(b' ') {
            rest
        } else {
            self
        }
    }
}

impl Iterator for Piece<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        match self.how {
            How::Nothing => return None,
            How::Byte(byte) => {
                self.how = How::Nothing;
                return Some(byte);
            }
            How::Spaces => {
                if let Some(rest) = self.text.strip_prefix(&SPACE) {
                    self.text = rest;
                    return Some(b' ');
                }
            }
            How::Letters => {
                // A letter beyond ASCII has two bytes; other characters stay what they are.
                if let [high @ 0xC0..0xE0, low, rest @ ..] = self.text
                    && let Some(byte) =
                        letters::byte(u16::from(high & 0x1F) << 6 | u16::from(low & 0x3F))
                {
                    self.text = rest;
                    return Some(byte);
                }
            }
            How::Plain => {}
        }
        let (&byte, rest) = self.text.split_first()?;
        self.text = rest;
        Some(byte)
    }
}

/// Decodes tokens one after the other, as llama.cpp's `llama_detokenize` does: where the vocabulary adds a space before
/// a text, one space is left out of the first token's piece. (So it stays where the first token is BOS.)
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    pieces: Pieces<'a>,
    specials: Specials,
    first: bool,
}

impl<'a> Decoder<'a> {
    /// Before the first token.
    pub const fn new(pieces: Pieces<'a>, specials: Specials) -> Self {
        Self {
            pieces,
            specials,
            first: true,
        }
    }

    /// The bytes of the next token.
    ///
    /// # Errors
    /// [`TokenizerError::Token`], which changes nothing.
    pub fn next(&mut self, id: u32) -> Result<Piece<'a>, TokenizerError> {
        let piece = self.pieces.piece(id, self.specials)?;
        let strips = self.first && self.pieces.vocabulary.adds_space_prefix();
        self.first = false;
        Ok(if strips { piece.without_space() } else { piece })
    }
}
