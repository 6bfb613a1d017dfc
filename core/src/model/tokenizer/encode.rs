//! Converts text to tokens, one after the other.

use super::chars::{Bytes, Loss};
use super::letters::Letters;
use super::special::{Marks, marks_len};
use super::spm::{Escaped, Scores, Text};
use super::symbols::{Symbols, WORDS};
use super::{Method, NO_TOKEN, Tokenizer, TokenizerError};

/// Options of encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Encoding {
    /// True to add BOS at the beginning and EOS at the end, if the vocabulary specifies them: `add_special` in
    /// llama.cpp.
    pub ends: bool,
    /// True if control tokens and the unknown token in the text become these tokens: `parse_special`. Otherwise they
    /// are ordinary text. User-defined tokens are found in any case.
    pub special: bool,
    /// Permission to lose bytes.
    pub loss: Loss,
}

impl Default for Encoding {
    /// Returns the default: BOS and EOS as the vocabulary specifies, special tokens as text, and the same loss of
    /// bytes as in llama.cpp.
    fn default() -> Self {
        Self {
            ends: true,
            special: false,
            loss: Loss::Allowed,
        }
    }
}

impl Encoding {
    /// Returns a length of scratch that is enough for any text of that many bytes: about 5 elements per byte, or 15
    /// if a byte may become the three bytes of U+FFFD.
    ///
    /// Most texts need less, because scratch holds one piece at a time. A piece of SPM is everything between special
    /// tokens; a piece of a byte-level vocabulary is a word. Without merges, scratch holds only special tokens. If it
    /// is too short, the error contains the needed length.
    pub const fn scratch_len(&self, bytes: usize) -> usize {
        let most = match self.loss {
            Loss::Allowed => bytes.saturating_mul(3),
            Loss::Refused => bytes,
        };
        most.saturating_add(1)
            .saturating_mul(WORDS)
            .saturating_add(marks_len(bytes))
    }
}

/// The next stage of encoding.
#[derive(Clone, Debug)]
enum Stage<'t> {
    /// BOS.
    Start,
    /// Parts of the text: each is a special token or the text between two of them.
    Parts,
    /// Pieces of a part.
    Pieces,
    /// Bytes that become tokens directly.
    Bytes(Bytes<'t>),
    /// Remaining symbols of a merged sequence.
    Row {
        at: u32,
    },
    /// EOS.
    End,
    Done,
}

/// The tokens of a text. After an error there are no more.
#[derive(Debug)]
pub struct Tokens<'a, 't> {
    tokenizer: Tokenizer<'a>,
    text: &'t [u8],
    encoding: Encoding,
    scratch: usize,
    marks: Marks<'t>,
    symbols: Symbols<'t>,
    stage: Stage<'t>,
    /// Number of processed bytes of the text, and the end of the part.
    at: usize,
    end: usize,
    /// True if the next part begins the text or follows a special token.
    spaced: bool,
    /// The text of an SPM sequence's symbols.
    row: Text<'t>,
    /// Remaining bytes of a symbol that is not a token.
    bytes: Option<Escaped<'t>>,
}

impl<'a, 't> Tokens<'a, 't> {
    pub(super) fn new(
        tokenizer: Tokenizer<'a>,
        text: &'t [u8],
        encoding: Encoding,
        scratch: &'t mut [u32],
    ) -> Result<Self, TokenizerError> {
        let len = text.len();
        // Places are one more than bytes, and the last two numbers are reserved.
        if u32::try_from(len).map_or(true, |len| len > u32::MAX - 2) {
            return Err(TokenizerError::Text { len });
        }
        let specials = tokenizer.specials(encoding.special);
        let words = if specials.is_empty() {
            0
        } else {
            marks_len(len)
        };
        let found = scratch.len();
        let split = scratch.split_at_mut_checked(words);
        let needed = words;
        let (words, rest) = split.ok_or(TokenizerError::Scratch { needed, found })?;
        let mut marks = Marks::new(words);
        marks.find(&tokenizer, encoding.special, text);
        Ok(Self {
            tokenizer,
            text,
            encoding,
            scratch: found,
            marks,
            symbols: Symbols::new(rest),
            stage: Stage::Start,
            at: 0,
            end: 0,
            spaced: true,
            row: Text::new(&[], false),
            bytes: None,
        })
    }

    /// Returns the error for a sequence of that many symbols, for which scratch is too short.
    fn short(&self, symbols: usize) -> TokenizerError {
        TokenizerError::Scratch {
            needed: symbols
                .saturating_mul(WORDS)
                .saturating_add(self.marks.len()),
            found: self.scratch,
        }
    }

    /// Returns the token of a byte; `None` for a byte that may be lost.
    fn byte(&self, byte: u8) -> Result<Option<u32>, TokenizerError> {
        let spm = self.tokenizer.pieces().vocabulary().method() == Method::Spm;
        match self.tokenizer.byte(byte) {
            None if spm || self.encoding.loss == Loss::Refused => {
                Err(TokenizerError::Byte { byte })
            }
            token => Ok(token),
        }
    }

    /// Begins the next part of the text. Returns its token if the part is a special token.
    fn part(&mut self) -> Result<Option<u32>, TokenizerError> {
        let start = self.end;
        if start >= self.text.len() {
            self.stage = Stage::End;
            return Ok(None);
        }
        let (end, special) = self.marks.part(start, self.text.len());
        (self.at, self.end) = (start, end);
        let part = self.text.get(start..end).unwrap_or_default();
        if special {
            self.spaced = true;
            // The part was found there.
            return Ok(self.tokenizer.token(part));
        }
        let vocabulary = self.tokenizer.pieces().vocabulary();
        match vocabulary.method() {
            Method::Spm => {
                let prefix = self.spaced && vocabulary.adds_space_prefix();
                self.spaced = false;
                self.at = end;
                self.row = Text::new(part, prefix);
                self.merge_characters()?;
            }
            Method::Bpe if vocabulary.merges() == 0 && !vocabulary.ignore_merges() => {
                self.stage = Stage::Bytes(Bytes::new(part, self.encoding.loss));
            }
            Method::Bpe => self.stage = Stage::Pieces,
        }
        Ok(None)
    }

    /// Merges the characters of an SPM text.
    fn merge_characters(&mut self) -> Result<(), TokenizerError> {
        let text = self.row;
        self.symbols.clear();
        let mut at = 0;
        while at < text.end() {
            if !self.symbols.push(at) {
                let mut count = self.symbols.capacity();
                while at < text.end() {
                    (at, count) = (text.char_end(at), count.saturating_add(1));
                }
                return Err(self.short(count));
            }
            at = text.char_end(at);
        }
        let tokenizer = self.tokenizer;
        self.symbols.merge(&Scores { tokenizer, text }, text.end());
        self.stage = self
            .symbols
            .first()
            .map_or(Stage::Parts, |at| Stage::Row { at });
        Ok(())
    }

    /// Merges the bytes of the next piece of the part. Returns its token if the whole piece is a token.
    fn piece(&mut self) -> Result<Option<u32>, TokenizerError> {
        let vocabulary = self.tokenizer.pieces().vocabulary();
        let part = self.text.get(..self.end).unwrap_or_default();
        let start = self.at;
        self.at = vocabulary.scanner().end(part, start);
        let piece = part.get(start..self.at).unwrap_or_default();
        if piece.is_empty() {
            self.stage = Stage::Parts;
            return Ok(None);
        }
        let bytes = Bytes::new(piece, self.encoding.loss);
        if vocabulary.ignore_merges() {
            let whole = self.tokenizer.find(Letters::new(bytes.clone()));
            if whole.is_some() {
                return Ok(whole);
            }
        }
        self.symbols.clear();
        for byte in bytes.clone() {
            let id = self.byte(byte)?;
            if !self.symbols.push(id.unwrap_or(NO_TOKEN)) {
                return Err(self.short(bytes.count()));
            }
        }
        self.symbols.merge(&self.tokenizer.ranks(), 0);
        self.stage = self
            .symbols
            .first()
            .map_or(Stage::Pieces, |at| Stage::Row { at });
        Ok(None)
    }

    /// Returns the token of the symbol at `at`. If the symbol is not a token, its bytes come next.
    fn symbol(&mut self, at: u32) -> Option<u32> {
        let (symbol, next) = self.symbols.get(at)?;
        let method = self.tokenizer.pieces().vocabulary().method();
        self.stage = match (next, method) {
            (Some(at), _) => Stage::Row { at },
            (None, Method::Bpe) => Stage::Pieces,
            (None, Method::Spm) => Stage::Parts,
        };
        if method == Method::Bpe {
            return Some(symbol).filter(|&id| id != NO_TOKEN);
        }
        let after = next.and_then(|next| self.symbols.get(next));
        let end = after.map_or(self.row.end(), |(start, _)| start);
        let part = self.row.part(symbol, end);
        let token = self.tokenizer.find(part.clone());
        if token.is_none() {
            self.bytes = Some(part);
        }
        token
    }

    /// Returns the next token; `None` if this step has none, or there are no more.
    fn step(&mut self) -> Result<Option<u32>, TokenizerError> {
        if let Some(bytes) = &mut self.bytes {
            match bytes.next() {
                Some(byte) => return self.byte(byte),
                None => self.bytes = None,
            }
        }
        let vocabulary = self.tokenizer.pieces().vocabulary();
        match &mut self.stage {
            Stage::Start => {
                self.stage = Stage::Parts;
                let added = self.encoding.ends && vocabulary.adds_bos();
                Ok(vocabulary.bos().filter(|_| added))
            }
            Stage::Parts => self.part(),
            Stage::Pieces => self.piece(),
            Stage::Bytes(bytes) => match bytes.next() {
                Some(byte) => self.byte(byte),
                None => {
                    self.stage = Stage::Parts;
                    Ok(None)
                }
            },
            &mut Stage::Row { at } => Ok(self.symbol(at)),
            Stage::End => {
                self.stage = Stage::Done;
                let added = self.encoding.ends && vocabulary.adds_eos();
                Ok(vocabulary.eos().filter(|_| added))
            }
            Stage::Done => Ok(None),
        }
    }
}

impl Iterator for Tokens<'_, '_> {
    type Item = Result<u32, TokenizerError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !matches!(self.stage, Stage::Done) {
            match self.step() {
                Ok(None) => {}
                Ok(Some(id)) => return Some(Ok(id)),
                Err(error) => {
                    (self.stage, self.bytes) = (Stage::Done, None);
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
