//! A GGUF file's tokenizer with its own memory: converts text to tokens, and back.
//!
//! ```no_run
//! use tercet_host::TensorFile;
//! use tercet_host::language::tokenizer::{Encoding, Specials, Tokenizer};
//!
//! let model = TensorFile::open("model.gguf")?;
//! let tokenizer = Tokenizer::open(&model, None)?;
//! let tokens = tokenizer.encode(b"Once upon a time", Encoding::default())?;
//! let text = tokenizer.decode(&tokens, Specials::Hidden)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tercet_core::gguf::Reader;
use tercet_core::model::tokenizer::{self as core, Decoder};

pub use tercet_core::model::tokenizer::{
    Encoding, Loss, Method, Scanner, Specials, TokenKind, TokenizerError, Vocabulary,
};

use crate::tensor_file::Container;
use crate::{Error, TensorFile};

/// Initial number of scratch elements: enough for pieces of 13,000 bytes; few texts have longer ones.
const SCRATCH: usize = 1 << 16;

/// A tokenizer with all its data, so the file may be closed. See [`core`] for its tokens.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    /// The file's bytes before its tensors' data.
    header: Vec<u8>,
    index: Vec<u32>,
}

impl Tokenizer {
    /// Returns the tokenizer of a GGUF model. `pre` names its pre-tokenizer, if the file names none or a wrong one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a model of another format; [`Error::BadFile`], with the fault in the metadata.
    pub fn open(model: &TensorFile, pre: Option<&str>) -> Result<Self, Error> {
        let path = model.path();
        if model.container() != Container::Gguf {
            let reason = "only GGUF files hold tokenizers";
            return Err(Error::unsupported(path, reason));
        }
        let bad = |reason: String| Error::bad(path, Container::Gguf.name(), reason);
        let file = model.raw();
        let reader = Reader::new(file).map_err(|error| bad(error.to_string()))?;
        Self::read(&reader, file, pre).map_err(|error| {
            let key = match error {
                TokenizerError::Model => "tokenizer.ggml.model",
                TokenizerError::Pre => "tokenizer.ggml.pre",
                _ => return bad(error.to_string()),
            };
            let named = reader.get(key).and_then(|value| value.as_str());
            let name = pre.filter(|_| error == TokenizerError::Pre).or(named);
            bad(format!("{error} (`{}`)", name.unwrap_or_default()))
        })
    }

    /// Returns the tokenizer of `file`, the bytes that `reader` reads; `pre` as for [`Tokenizer::open`].
    ///
    /// # Errors
    /// Those of [`Vocabulary::new`] and [`core::Tokenizer::new`].
    pub fn read(
        reader: &Reader<'_>,
        file: &[u8],
        pre: Option<&str>,
    ) -> Result<Self, TokenizerError> {
        let vocabulary = match pre {
            Some(pre) => Vocabulary::with_pre(reader, file, pre)?,
            None => Vocabulary::new(reader, file)?,
        };
        let header = file[..file.len() - reader.data().len()].to_vec();
        let mut index = vec![0; vocabulary.index_len()];
        core::Tokenizer::new(&vocabulary, &header, &mut index)?;
        Ok(Self {
            vocabulary,
            header,
            index,
        })
    }

    /// Returns the same tokenizer as a type of [`core`], without allocation.
    pub fn view(&self) -> core::Tokenizer<'_> {
        core::Tokenizer::attach(&self.vocabulary, &self.header, &self.index)
            .expect("the index is as long as the vocabulary asks")
    }

    /// Returns the tokenizer's description in the file.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Returns the tokens that end a text.
    pub fn ends(&self) -> Vec<u32> {
        let pieces = *self.view().pieces();
        let all = 0..self.vocabulary.tokens();
        all.filter(|&token| pieces.is_end(token)).collect()
    }

    /// Returns the number of bytes of a token's text, including the marks of control tokens; 0 for an unknown id.
    pub fn bytes(&self, token: u32) -> usize {
        let pieces = *self.view().pieces();
        let piece = pieces.piece(token, Specials::Shown);
        piece.map_or(0, Iterator::count)
    }

    /// Returns the tokens of a text, which need not be UTF-8.
    ///
    /// # Errors
    /// [`TokenizerError::Text`] from 4 GiB on; [`TokenizerError::Byte`] if the vocabulary has no token for a byte that
    /// must not be lost.
    pub fn encode(&self, text: &[u8], encoding: Encoding) -> Result<Vec<u32>, TokenizerError> {
        let view = self.view();
        let mut scratch = vec![0; SCRATCH.min(encoding.scratch_len(text.len()))];
        loop {
            let tokens = view.encode(text, encoding, &mut scratch);
            match tokens.and_then(Iterator::collect) {
                // At least twice as long, so that a text with longer and longer pieces is not restarted for each.
                Err(TokenizerError::Scratch { needed, .. }) => {
                    let len = needed.max(scratch.len().saturating_mul(2));
                    scratch = vec![0; len];
                }
                tokens => return tokens,
            }
        }
    }

    /// Returns the bytes of tokens, which need not be UTF-8. If the vocabulary adds a space before a text, the first
    /// token's space is left out, as in llama.cpp.
    ///
    /// # Errors
    /// [`TokenizerError::Token`] for an unknown id.
    pub fn decode(&self, tokens: &[u32], specials: Specials) -> Result<Vec<u8>, TokenizerError> {
        let mut decoder = Decoder::new(*self.view().pieces(), specials);
        let mut text = Vec::new();
        for &id in tokens {
            text.extend(decoder.next(id)?);
        }
        Ok(text)
    }

    /// Returns an empty text that grows by a token at a time.
    pub fn stream(&self, specials: Specials) -> Stream<'_> {
        Stream {
            decoder: Decoder::new(*self.view().pieces(), specials),
            held: Vec::new(),
        }
    }
}

/// Converts tokens to text one after another, in whole characters.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    decoder: Decoder<'a>,
    /// The beginning of a character.
    held: Vec<u8>,
}

impl Stream<'_> {
    /// Returns the text that a token adds: nothing while a character is incomplete. Bytes that cannot be part of a
    /// character become U+FFFD.
    ///
    /// # Errors
    /// [`TokenizerError::Token`] for an unknown id, which changes nothing.
    pub fn push(&mut self, id: u32) -> Result<String, TokenizerError> {
        self.held.extend(self.decoder.next(id)?);
        let unfinished = match std::str::from_utf8(&self.held) {
            Ok(_) => 0,
            // Only the last bytes may be the beginning of a character.
            Err(_) => (1..=self.held.len().min(3))
                .find(|&len| {
                    let tail = &self.held[self.held.len() - len..];
                    std::str::from_utf8(tail)
                        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
                })
                .unwrap_or(0),
        };
        let rest = self.held.split_off(self.held.len() - unfinished);
        let whole = std::mem::replace(&mut self.held, rest);
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }

    /// Returns the end of the text: U+FFFD if a character is incomplete.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.held).into_owned()
    }
}
