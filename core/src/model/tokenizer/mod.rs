//! Tokenizers of GGUF language models, in the caller's memory: SPM (`llama`) and byte-level BPE (`gpt2`).
//!
//! [`Vocabulary`] reads and checks a file's metadata. [`Pieces`] converts tokens to bytes; [`Tokenizer`] also
//! converts text to tokens. A file's list of texts has no index, so the caller provides memory for one; the
//! vocabulary returns its length.
//!
//! The tokens are those of llama.cpp 0.7 for every text. There are three differences: [`Loss`] can keep the bytes
//! that llama.cpp loses. An SPM vocabulary without a token for a byte is an error, for which llama.cpp ends the
//! program. And llama.cpp drops spaces after some tokens of models with the name phi-3, which the tokenizer's
//! metadata does not contain.
//!
//! | method | description |
//! |---|---|
//! | SPM | characters, merged by score; symbols that are not tokens become byte tokens |
//! | byte-level BPE | pieces cut by one of four [`Scanner`]s, their bytes merged by rank |
//! | a byte vocabulary | byte-level BPE without merges: 256 letters and special tokens |
//!
//! A text of n bytes takes O(n log n), for any content.
//!
//! ```
//! use tercet_core::gguf::{Reader, SliceSink, Writer};
//! use tercet_core::model::tokenizer::{Decoder, Encoding, Pieces, Specials, Tokenizer, Vocabulary};
//!
//! // A vocabulary of eight tokens, as a file has it.
//! let texts = ["<unk>", "<s>", "</s>", "▁", "h", "i", "hi", "▁hi"];
//! let mut file = [0; 512];
//! let mut writer = Writer::new(SliceSink::new(&mut file), 4, &[])?;
//! writer.entry("tokenizer.ggml.model", "llama")?;
//! writer.entry("tokenizer.ggml.tokens", &texts[..])?;
//! let scores = [0.0f32, 0.0, 0.0, -5.0, -6.0, -7.0, -1.0, -2.0];
//! writer.entry("tokenizer.ggml.scores", &scores[..])?;
//! let kinds = [2, 3, 3, 1, 1, 1, 1, 1];
//! writer.entry("tokenizer.ggml.token_type", &kinds[..])?;
//! let len = writer.into_data()?.finish()?.len();
//! let file = &file[..len];
//!
//! let vocabulary = Vocabulary::new(&Reader::new(file)?, file)?;
//! let mut index = vec![0; vocabulary.index_len()];
//! let tokenizer = Tokenizer::new(&vocabulary, file, &mut index)?;
//!
//! let encoding = Encoding::default();
//! let mut scratch = vec![0; encoding.scratch_len(5)];
//! let tokens: Vec<u32> = tokenizer.encode(b"hi hi", encoding, &mut scratch)?.collect::<Result<_, _>>()?;
//! assert_eq!(tokens, [1, 7, 7]); // BOS, and a space before the first word too
//!
//! let mut decoder = Decoder::new(*tokenizer.pieces(), Specials::Hidden);
//! let mut text = Vec::new();
//! for &id in &tokens[1..] {
//!     text.extend(decoder.next(id)?);
//! }
//! assert_eq!(text, b"hi hi");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bpe;
mod chars;
mod classes;
mod classes_table;
mod encode;
mod ends;
mod error;
mod letters;
mod lookup;
mod metadata;
mod pieces;
mod pre;
mod scan;
mod special;
mod spm;
mod symbols;
mod vocabulary;
mod words;

use bpe::Ranks;
use letters::Letters;
use lookup::{TextHash, find, insert};

pub use chars::Loss;
pub use encode::{Encoding, Tokens};
pub use error::TokenizerError;
pub use pieces::{Decoder, Piece, Pieces, Specials};
pub use scan::Scanner;
pub use vocabulary::Vocabulary;

/// Method of tokenization: `tokenizer.ggml.model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Method {
    /// SentencePiece's BPE, `llama` in files: characters merged by score, with U+2581 for spaces.
    Spm,
    /// Byte-level BPE, `gpt2` in files: bytes merged by rank within pieces.
    Bpe,
}

/// Type of a token: `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TokenKind {
    /// Unknown type.
    Undefined = 0,
    /// Ordinary text.
    #[default]
    Normal = 1,
    /// Represents text that the vocabulary lacks.
    Unknown = 2,
    /// Begins or ends a part of the text.
    Control = 3,
    /// Text that is always one token.
    UserDefined = 4,
    /// Not used.
    Unused = 5,
    /// One byte.
    Byte = 6,
}

impl TokenKind {
    /// Returns the type with this number.
    const fn of(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::Undefined,
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

/// No token, in the table of bytes.
const NO_TOKEN: u32 = u32::MAX;

/// A vocabulary with its file and its index: converts text to tokens, and tokens to text.
#[derive(Clone, Copy, Debug)]
pub struct Tokenizer<'a> {
    pieces: Pieces<'a>,
    texts: &'a [u32],
    bytes: &'a [u32],
    merges: &'a [u32],
    ranks: &'a [u32],
}

impl<'a> Tokenizer<'a> {
    /// Fills `index`, of exactly [`Vocabulary::index_len`] elements, from `file`: the bytes from which the vocabulary
    /// was read, or at least those before the tensors' data. Time: linear in the texts of tokens and merges.
    ///
    /// # Errors
    /// [`TokenizerError::Index`]; [`TokenizerError::File`]; [`TokenizerError::Repeated`]; [`TokenizerError::Merge`];
    /// [`TokenizerError::Collisions`].
    pub fn new(
        vocabulary: &'a Vocabulary,
        file: &'a [u8],
        index: &'a mut [u32],
    ) -> Result<Self, TokenizerError> {
        let parts = Parts::of(vocabulary, index)?;
        Pieces::fill(vocabulary, file, parts.offsets)?;
        let mut tokenizer = Tokenizer {
            pieces: Pieces::attach(vocabulary, file, parts.offsets),
            texts: &[],
            bytes: &[],
            merges: &[],
            ranks: &[],
        };
        tokenizer.fill_texts(parts.texts)?;
        tokenizer.texts = parts.texts;
        tokenizer.fill_bytes(parts.bytes);
        parts.ranks.fill(0);
        let merges = vocabulary.merges.bytes(file);
        bpe::fill(&tokenizer, merges, parts.merges, parts.ranks)?;
        Self::attach(vocabulary, file, index)
    }

    /// Uses an index that [`Tokenizer::new`] filled for the same vocabulary and file, in constant time. With any
    /// other, tokens and texts are wrong.
    ///
    /// # Errors
    /// [`TokenizerError::Index`].
    pub fn attach(
        vocabulary: &'a Vocabulary,
        file: &'a [u8],
        index: &'a [u32],
    ) -> Result<Self, TokenizerError> {
        let [offsets, texts, bytes, merges, ranks] = vocabulary.index_parts();
        let found = index.len();
        let expected = vocabulary.index_len();
        let cut = |rest: &mut &'a [u32], len| {
            let (part, after) = rest.split_at_checked(len)?;
            *rest = after;
            Some(part)
        };
        let mut rest = index;
        let mut part = |len| {
            let fits = found == expected;
            let part = cut(&mut rest, len).filter(|_| fits);
            part.ok_or(TokenizerError::Index { expected, found })
        };
        Ok(Self {
            pieces: Pieces::attach(vocabulary, file, part(offsets)?),
            texts: part(texts)?,
            bytes: part(bytes)?,
            merges: part(merges)?,
            ranks: part(ranks)?,
        })
    }

    /// Stores every token by its text. Tokens without text are never found.
    fn fill_texts(&self, slots: &mut [u32]) -> Result<(), TokenizerError> {
        slots.fill(0);
        for id in 0..self.pieces.vocabulary().tokens() {
            let text = self.pieces.text(id).ok_or(TokenizerError::File)?;
            if text.is_empty() {
                continue;
            }
            let same = |there| self.pieces.text(there) == Some(text);
            let hash = text
                .iter()
                .fold(TextHash::new(), |hash, &byte| hash.byte(byte));
            let there = insert(slots, hash.finish(), id, "tokenizer.ggml.tokens", same)?;
            if let Some(first) = there {
                return Err(TokenizerError::Repeated { id, first });
            }
        }
        Ok(())
    }

    /// Finds the token of each byte: its letter, or `<0xNN>`, otherwise the byte itself.
    fn fill_bytes(&self, bytes: &mut [u32]) {
        for (byte, slot) in (0..=u8::MAX).zip(bytes) {
            let token = match self.pieces.vocabulary().method() {
                Method::Bpe => self.find(Letters::new([byte].into_iter())),
                Method::Spm => {
                    let digit = |value: u8| match value {
                        0..=9 => b'0' | value,
                        _ => value.wrapping_add(b'A' - 10),
                    };
                    let name = [b'<', b'0', b'x', digit(byte >> 4), digit(byte & 15), b'>'];
                    self.token(&name).or_else(|| self.token(&[byte]))
                }
            };
            *slot = token.unwrap_or(NO_TOKEN);
        }
    }

    /// Returns the texts and their properties in the file.
    pub const fn pieces(&self) -> &Pieces<'a> {
        &self.pieces
    }

    /// Returns the token with that text, in the vocabulary's form.
    pub fn token(&self, text: &[u8]) -> Option<u32> {
        self.find(text.iter().copied())
    }

    /// Returns the token whose text is these bytes. Time: at most linear in the longest text.
    #[inline]
    fn find(&self, text: impl Iterator<Item = u8> + Clone) -> Option<u32> {
        let longest = self.pieces.vocabulary().longest;
        let (mut hash, mut len) = (TextHash::new(), 0_usize);
        for byte in text.clone() {
            hash = hash.byte(byte);
            len = len.saturating_add(1);
            if len > longest {
                return None;
            }
        }
        find(self.texts, hash.finish(), |id| {
            let token = self.pieces.text(id).unwrap_or_default();
            token.len() == len && token.iter().copied().eq(text.clone())
        })
    }

    /// Returns the token of a byte.
    fn byte(&self, byte: u8) -> Option<u32> {
        let id = self.bytes.get(usize::from(byte)).copied();
        id.filter(|&id| id != NO_TOKEN)
    }

    const fn ranks(&self) -> Ranks<'a> {
        Ranks {
            merges: self.merges,
            slots: self.ranks,
        }
    }

    /// Returns the tokens that are cut out of a text, with or without control tokens.
    const fn specials(&self, special: bool) -> &special::Specials {
        match special {
            true => &self.pieces.vocabulary().special,
            false => &self.pieces.vocabulary().defined,
        }
    }

    /// Returns true if the token is one of [`Tokenizer::specials`].
    fn is_cut(&self, id: u32, special: bool) -> bool {
        match self.pieces.kind(id) {
            Some(TokenKind::UserDefined) => true,
            Some(TokenKind::Control | TokenKind::Unknown) => special,
            _ => false,
        }
    }

    /// Returns the tokens of a text, which need not be UTF-8.
    ///
    /// `scratch` may have any length and content; [`Encoding::scratch_len`] elements are always enough. Time: O(n log
    /// n). Special tokens are found before the first token is returned; each piece is encoded when the iterator
    /// reaches it.
    ///
    /// # Errors
    /// [`TokenizerError::Text`]; [`TokenizerError::Scratch`]. The iterator returns [`TokenizerError::Scratch`] if
    /// scratch is too short for a piece, and [`TokenizerError::Byte`] if the vocabulary has no token for a byte.
    pub fn encode<'t>(
        &self,
        text: &'t [u8],
        encoding: Encoding,
        scratch: &'t mut [u32],
    ) -> Result<Tokens<'a, 't>, TokenizerError> {
        Tokens::new(*self, text, encoding, scratch)
    }
}

/// An index: offsets of texts, texts by hash, tokens of bytes, merges, merges by hash.
struct Parts<'i> {
    offsets: &'i mut [u32],
    texts: &'i mut [u32],
    bytes: &'i mut [u32],
    merges: &'i mut [u32],
    ranks: &'i mut [u32],
}

impl<'i> Parts<'i> {
    fn of(vocabulary: &Vocabulary, index: &'i mut [u32]) -> Result<Self, TokenizerError> {
        let [offsets, texts, bytes, merges, _] = vocabulary.index_parts();
        let (expected, found) = (vocabulary.index_len(), index.len());
        let wrong = TokenizerError::Index { expected, found };
        if expected != found {
            return Err(wrong);
        }
        let (offsets, rest) = index.split_at_mut_checked(offsets).ok_or(wrong)?;
        let (texts, rest) = rest.split_at_mut_checked(texts).ok_or(wrong)?;
        let (bytes, rest) = rest.split_at_mut_checked(bytes).ok_or(wrong)?;
        let (merges, ranks) = rest.split_at_mut_checked(merges).ok_or(wrong)?;
        Ok(Self {
            offsets,
            texts,
            bytes,
            merges,
            ranks,
        })
    }
}
