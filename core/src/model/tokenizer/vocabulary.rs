//! Reads and checks the tokenizer metadata of a file.

use super::ends::is_end;
use super::lookup::{MOST, slots};
use super::metadata::{Entries, Key, Span, string, word};
use super::pre::Pre;
use super::special::Specials;
use super::{Method, Scanner, TokenKind, TokenizerError};
use crate::gguf::{Reader, ValueType};

/// A tokenizer's numbers, and the places of its texts in the file; it does not contain the texts themselves.
///
/// It is created once per file, in one pass over the metadata and one over the tokens. [`super::Pieces`] and
/// [`super::Tokenizer`] combine it with the file's bytes and an index, whose length it returns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vocabulary {
    pub(super) method: Method,
    pub(super) pre: Pre,
    pub(super) adds_bos: bool,
    pub(super) adds_eos: bool,
    pub(super) adds_space_prefix: bool,
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) eot: Option<u32>,
    pub(super) eom: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) padding: Option<u32>,
    pub(super) tokens: Span,
    pub(super) types: Option<Span>,
    pub(super) scores: Option<(Span, ValueType)>,
    pub(super) merges: Span,
    /// Number of bytes of the longest text.
    pub(super) longest: usize,
    /// User-defined tokens, which are cut out of every text.
    pub(super) defined: Specials,
    /// The same, plus control tokens and the unknown token.
    pub(super) special: Specials,
}

impl Vocabulary {
    /// Reads and checks the tokenizer of `file`, the bytes that `reader` reads.
    ///
    /// Missing entries have llama.cpp's defaults. SPM has BOS 1, EOS 2 and unknown 0, and adds BOS and a space before
    /// the text. Byte-level BPE has BOS and EOS 11 and adds neither, unless its pre-tokenizer is `llama-bpe` or
    /// another for which llama.cpp adds BOS. A default id that is not in the vocabulary is absent.
    ///
    /// # Errors
    /// A [`TokenizerError`] that names the entry in error. A byte-level vocabulary with merges but without
    /// `tokenizer.ggml.pre` is [`TokenizerError::Missing`]: llama.cpp would cut its texts by rules that no model was
    /// trained with. [`Vocabulary::with_pre`] takes the name from the caller.
    // A separate stack frame; otherwise a program's main loop would keep all of it.
    #[inline(never)]
    pub fn new(reader: &Reader<'_>, file: &[u8]) -> Result<Self, TokenizerError> {
        Self::read(&Entries::new(reader), file, None)
    }

    /// Like [`Vocabulary::new`], with the pre-tokenizer of that name (as in `tokenizer.ggml.pre`) instead of the
    /// file's.
    ///
    /// # Errors
    /// Those of [`Vocabulary::new`]; [`TokenizerError::Pre`] for an unknown name.
    pub fn with_pre(reader: &Reader<'_>, file: &[u8], pre: &str) -> Result<Self, TokenizerError> {
        Self::read(&Entries::new(reader), file, Some(pre))
    }

    fn read(entries: &Entries<'_>, file: &[u8], pre: Option<&str>) -> Result<Self, TokenizerError> {
        let missing = |key: Key| TokenizerError::Missing { key: key.name() };
        let method = match entries.text(Key::Model)? {
            Some("llama") => Method::Spm,
            Some("gpt2") => Method::Bpe,
            Some(_) => return Err(TokenizerError::Model),
            None => return Err(missing(Key::Model)),
        };
        let tokens = entries.array(Key::Tokens, &[ValueType::String])?;
        let (tokens, _) = tokens.ok_or(missing(Key::Tokens))?;
        count(Key::Tokens, tokens.count, 1)?;
        let types = entries.array(Key::TokenType, &[ValueType::I32])?;
        let scores = entries.array(Key::Scores, &[ValueType::F32, ValueType::I32])?;
        for (key, span) in [(Key::TokenType, types), (Key::Scores, scores)] {
            if let Some((span, _)) = span.filter(|(span, _)| span.count != tokens.count) {
                return Err(TokenizerError::Length {
                    key: key.name(),
                    expected: tokens.count,
                    found: span.count,
                });
            }
        }
        let merges = match method {
            Method::Spm => Span::default(),
            Method::Bpe => {
                let merges = entries.array(Key::Merges, &[ValueType::String])?;
                merges.ok_or(missing(Key::Merges))?.0
            }
        };
        count(Key::Merges, merges.count, 0)?;
        let pre = match pre.or(entries.text(Key::Pre)?) {
            _ if method == Method::Spm => Pre::BYTES,
            Some(name) => Pre::named(name).ok_or(TokenizerError::Pre)?,
            None if merges.count == 0 => Pre::BYTES,
            None => return Err(missing(Key::Pre)),
        };
        let spm = method == Method::Spm;
        let own = |id: u32| Some(id).filter(|&id| (id as usize) < tokens.count);
        let (bos, eos, unknown) = match method {
            Method::Spm => (own(1), own(2), own(0)),
            Method::Bpe => (own(11).filter(|_| pre.has_bos), own(11), None),
        };
        let id = |key: Key, otherwise: Option<u32>| match entries.number(key)? {
            None => Ok(otherwise),
            Some(id) => u32::try_from(id)
                .ok()
                .and_then(own)
                .map(Some)
                .ok_or(TokenizerError::Id {
                    key: key.name(),
                    id,
                    tokens: tokens.count,
                }),
        };
        // Files whose padding token is one past the last token are common, and nothing uses it.
        let padding = entries.number(Key::Padding)?;
        let mut vocabulary = Self {
            method,
            pre,
            adds_bos: entries.flag(Key::AddBos)?.unwrap_or(spm || pre.adds_bos),
            adds_eos: entries.flag(Key::AddEos)?.unwrap_or(false),
            adds_space_prefix: entries.flag(Key::AddSpacePrefix)?.unwrap_or(spm),
            bos: id(Key::Bos, bos)?,
            eos: id(Key::Eos, eos)?,
            eot: id(Key::Eot, None)?,
            eom: id(Key::Eom, None)?,
            unknown: id(Key::Unknown, unknown)?,
            padding: padding.and_then(|id| own(u32::try_from(id).ok()?)),
            tokens,
            types: types.map(|(span, _)| span),
            scores,
            merges,
            longest: 0,
            defined: Specials::default(),
            special: Specials::default(),
        };
        if vocabulary.adds_bos && vocabulary.bos.is_none() {
            return Err(missing(Key::Bos));
        }
        if vocabulary.adds_eos && vocabulary.eos.is_none() {
            return Err(missing(Key::Eos));
        }
        vocabulary.check_tokens(file)?;
        Ok(vocabulary)
    }

    /// Checks each token's text, type and score.
    fn check_tokens(&mut self, file: &[u8]) -> Result<(), TokenizerError> {
        let texts = self.tokens.bytes(file);
        let mut offset = 0;
        for id in 0..self.tokens() {
            let (text, next) = string(texts, offset).ok_or(TokenizerError::File)?;
            offset = next;
            self.longest = self.longest.max(text.len());
            let kind = self.stored_kind(file, id);
            let kind = TokenKind::of(kind).ok_or(TokenizerError::TokenType { id, kind })?;
            match effective(kind, text) {
                TokenKind::Byte if byte_of(text).is_none() => {
                    return Err(TokenizerError::ByteText { id });
                }
                TokenKind::UserDefined => {
                    self.defined.add(id, text)?;
                    self.special.add(id, text)?;
                }
                TokenKind::Control | TokenKind::Unknown => self.special.add(id, text)?,
                _ => {}
            }
            if self.score(file, id).is_nan() {
                return Err(TokenizerError::Score { id });
            }
        }
        Ok(())
    }

    fn stored_kind(&self, file: &[u8], id: u32) -> i32 {
        let types = self
            .types
            .and_then(|types| word(types.bytes(file), id as usize));
        types.map_or(TokenKind::Normal as i32, i32::from_le_bytes)
    }

    /// Returns the type of a token with that text.
    pub(super) fn kind(&self, file: &[u8], id: u32, text: &[u8]) -> TokenKind {
        let kind = TokenKind::of(self.stored_kind(file, id)).unwrap_or_default();
        effective(kind, text)
    }

    /// Returns the score of a token; 0 if the file has none.
    pub(super) fn score(&self, file: &[u8], id: u32) -> f32 {
        let Some((span, kind)) = self.scores else {
            return 0.0;
        };
        match word(span.bytes(file), id as usize) {
            None => 0.0,
            Some(bytes) if kind == ValueType::I32 => i32::from_le_bytes(bytes) as f32,
            Some(bytes) => f32::from_le_bytes(bytes),
        }
    }

    /// Returns the texts in the file's encoding.
    pub(super) fn texts<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        self.tokens.bytes(file)
    }

    pub(super) const fn ignore_merges(&self) -> bool {
        self.pre.ignore_merges
    }

    /// Returns the method of tokenization.
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Returns the scanner that cuts a text before merging; not used by [`Method::Spm`].
    pub const fn scanner(&self) -> Scanner {
        self.pre.scanner
    }

    /// Returns the number of tokens; ids are below it.
    pub const fn tokens(&self) -> u32 {
        // `count` bounds it.
        self.tokens.count as u32
    }

    /// Returns the number of merges; 0 for [`Method::Spm`].
    pub const fn merges(&self) -> u32 {
        self.merges.count as u32
    }

    /// Returns the token that begins a text.
    pub const fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Returns the token that ends a text.
    pub const fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Returns the token that ends a turn.
    pub const fn eot(&self) -> Option<u32> {
        self.eot
    }

    /// Returns the token that ends a message.
    pub const fn eom(&self) -> Option<u32> {
        self.eom
    }

    /// Returns the token for text that the vocabulary lacks.
    pub const fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// Returns the token that pads batches. Absent also if the file's id is not in the vocabulary, which occurs in
    /// real files.
    pub const fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Returns true if [`Vocabulary::bos`] begins an encoded text.
    pub const fn adds_bos(&self) -> bool {
        self.adds_bos
    }

    /// Returns true if [`Vocabulary::eos`] ends an encoded text.
    pub const fn adds_eos(&self) -> bool {
        self.adds_eos
    }

    /// Returns true if a space is added before a text, at its start and after special tokens, and removed in
    /// decoding.
    pub const fn adds_space_prefix(&self) -> bool {
        self.adds_space_prefix
    }

    /// Returns the index length for [`super::Pieces`]: one element per token.
    pub const fn pieces_index_len(&self) -> usize {
        self.tokens.count
    }

    /// Returns the index length for [`super::Tokenizer`].
    ///
    /// A token takes 2.5 to 4 elements, a merge 4.5 to 6: 128,256 tokens and 280,147 merges (Llama 3) take 7.3 MB,
    /// 512 tokens and 255 merges 8.2 KB.
    pub const fn index_len(&self) -> usize {
        let [offsets, texts, bytes, merges, ranks] = self.index_parts();
        offsets
            .saturating_add(texts)
            .saturating_add(bytes)
            .saturating_add(merges)
            .saturating_add(ranks)
    }

    /// Returns the number of elements of each part: offsets of texts, texts by hash, tokens of bytes, merges, merges
    /// by hash.
    pub(super) const fn index_parts(&self) -> [usize; 5] {
        let merges = self.merges.count;
        let ranks = if merges == 0 { 0 } else { slots(merges) };
        let tokens = self.tokens.count;
        [tokens, slots(tokens), 256, merges.saturating_mul(3), ranks]
    }
}

/// Checks that an array can be indexed.
fn count(key: Key, count: usize, least: usize) -> Result<(), TokenizerError> {
    if (least..=MOST).contains(&count) {
        return Ok(());
    }
    Err(TokenizerError::Count {
        key: key.name(),
        count,
    })
}

/// Returns the type of a token, from its type in the file and its text.
fn effective(stored: TokenKind, text: &[u8]) -> TokenKind {
    if stored != TokenKind::Control && is_end(text) {
        return TokenKind::Control;
    }
    stored
}

/// Returns the byte of a token of type 6: `<0x00>` to `<0xFF>`.
pub(super) fn byte_of(text: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = *text else {
        return None;
    };
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit & 0x0F),
        b'A'..=b'F' | b'a'..=b'f' => Some((digit & 0x0F).wrapping_add(9)),
        _ => None,
    };
    Some(digit(high)? << 4 | digit(low)?)
}
