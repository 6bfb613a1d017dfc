//! Converts tokens back to bytes.

use super::ends::is_end;
use super::letters;
use super::metadata::string;
use super::vocabulary::byte_of;
use super::{Method, TokenKind, TokenizerError, Vocabulary};

/// The character that represents a space in SPM vocabularies: U+2581.
pub(super) const SPACE: [u8; 3] = [0xE2, 0x96, 0x81];

/// Decoding of control tokens and the unknown token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Specials {
    /// They become no bytes.
    #[default]
    Hidden,
    /// They become their texts in the vocabulary.
    Shown,
}

/// The texts of a vocabulary, for decoding. They need an index of one element per token, or fewer.
///
/// Pieces are those of llama.cpp's `llama_token_to_piece`. Its `llama_detokenize` then drops some spaces before
/// punctuation if the pre-tokenizer asks for it; decoding here returns the encoded text.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    vocabulary: &'a Vocabulary,
    file: &'a [u8],
    /// Offsets of the texts of every `stride`-th token.
    offsets: &'a [u32],
    stride: u32,
}

impl<'a> Pieces<'a> {
    /// Fills `index` with the offsets of tokens' texts in `file`: the bytes from which the vocabulary was read, or at
    /// least those before the tensors' data. The index has [`Vocabulary::pieces_index_len`] elements, one per token.
    /// It may have fewer, but at least 1: texts between the stored ones are then searched for, in O(tokens per
    /// element).
    ///
    /// # Errors
    /// [`TokenizerError::Index`]; [`TokenizerError::File`].
    // A separate stack frame; otherwise a program's main loop would keep all of it.
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

    /// Uses offsets that were filled before, with their file.
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

    /// Returns the number of tokens per element, at least 1.
    const fn stride(vocabulary: &Vocabulary, offsets: &[u32]) -> u32 {
        let len = if offsets.is_empty() { 1 } else { offsets.len() };
        let stride = vocabulary.pieces_index_len().div_ceil(len) as u32;
        if stride == 0 { 1 } else { stride }
    }

    /// Returns the vocabulary.
    pub const fn vocabulary(&self) -> &'a Vocabulary {
        self.vocabulary
    }

    /// Returns a token's text in the vocabulary's form, in UTF-8; `None` for an id without a token.
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

    /// Returns a token's type. A token whose text ends a text in llama.cpp is a control token, independent of the
    /// file.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        Some(self.vocabulary.kind(self.file, id, self.text(id)?))
    }

    /// Returns a token's score; 0 if the file has none.
    pub fn score(&self, id: u32) -> Option<f32> {
        self.text(id).map(|_| self.vocabulary.score(self.file, id))
    }

    /// Returns true if generation ends with the token: EOS, the ends of turn and message, and tokens that llama.cpp
    /// recognizes by their text.
    pub fn is_end(&self, id: u32) -> bool {
        let ends = [
            self.vocabulary.eos(),
            self.vocabulary.eot(),
            self.vocabulary.eom(),
        ];
        ends.contains(&Some(id)) || self.text(id).is_some_and(is_end)
    }

    /// Returns the bytes of a token. They need not be whole characters.
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

/// Conversion of a text to bytes.
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
    /// Drops a leading space.
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
                // A letter beyond ASCII has two bytes; other characters stay unchanged.
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

/// Decodes tokens one after the other, like llama.cpp's `llama_detokenize`. If the vocabulary adds a space before a
/// text, the first token's piece loses one space. (So the space stays if the first token is BOS.)
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    pieces: Pieces<'a>,
    specials: Specials,
    first: bool,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder before its first token.
    pub const fn new(pieces: Pieces<'a>, specials: Specials) -> Self {
        Self {
            pieces,
            specials,
            first: true,
        }
    }

    /// Returns the bytes of the next token.
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
