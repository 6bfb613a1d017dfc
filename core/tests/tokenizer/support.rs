//! Vocabularies made for tests, in the bytes of a file.

use std::convert::Infallible;
use std::fmt::Write as _;

use tercet_core::gguf::{Reader, Sink, Value, Writer};
use tercet_core::model::tokenizer::{
    Decoder, Encoding, Loss, Specials, Tokenizer, TokenizerError, Vocabulary,
};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A file's entries, which a test changes before it is written.
#[derive(Clone, Default)]
pub(crate) struct Entries<'a>(Vec<(&'static str, Value<'a>)>);

impl<'a> Entries<'a> {
    /// Sets an entry of `tokenizer.ggml.`
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value<'a>>) -> Self {
        let value = value.into();
        self.0.retain(|(there, _)| *there != key);
        self.0.push((key, value));
        self
    }

    pub(crate) fn without(mut self, key: &str) -> Self {
        self.0.retain(|(there, _)| *there != key);
        self
    }

    pub(crate) fn file(&self) -> Vec<u8> {
        let mut writer = Writer::new(Bytes(Vec::new()), self.0.len() as u64, &[]).unwrap();
        for (key, value) in &self.0 {
            writer
                .entry(&format!("tokenizer.ggml.{key}"), *value)
                .unwrap();
        }
        writer.into_data().unwrap().finish().unwrap().0
    }

    /// A tokenizer's refusal, wherever it comes.
    pub(crate) fn refused(&self) -> TokenizerError {
        Owned::new(&self.file()).err().expect("it is refused")
    }
}

/// A tokenizer with its memory.
pub(crate) struct Owned {
    vocabulary: Vocabulary,
    file: Vec<u8>,
    index: Vec<u32>,
}

impl Owned {
    pub(crate) fn new(file: &[u8]) -> Result<Self, TokenizerError> {
        let reader = Reader::new(file).unwrap();
        let vocabulary = Vocabulary::new(&reader, file)?;
        // All tests go by what a program's constants say.
        let again = Vocabulary::from_words(&vocabulary.words());
        assert_eq!(again, vocabulary);
        let vocabulary = again;
        let mut index = vec![7; vocabulary.index_len()];
        Tokenizer::new(&vocabulary, file, &mut index)?;
        Ok(Self {
            vocabulary,
            file: file.to_vec(),
            index,
        })
    }

    pub(crate) fn of(entries: &Entries<'_>) -> Self {
        Self::new(&entries.file()).unwrap()
    }

    pub(crate) fn view(&self) -> Tokenizer<'_> {
        Tokenizer::attach(&self.vocabulary, &self.file, &self.index).unwrap()
    }

    pub(crate) fn encode(&self, text: impl AsRef<[u8]>, encoding: Encoding) -> Vec<u32> {
        self.try_encode(text.as_ref(), encoding).unwrap()
    }

    pub(crate) fn try_encode(
        &self,
        text: &[u8],
        encoding: Encoding,
    ) -> Result<Vec<u32>, TokenizerError> {
        let mut scratch = vec![7; encoding.scratch_len(text.len())];
        self.view().encode(text, encoding, &mut scratch)?.collect()
    }

    /// Texts of the tokens that a text becomes.
    pub(crate) fn cut(&self, text: impl AsRef<[u8]>, encoding: Encoding) -> Vec<String> {
        let tokens = self.encode(text, encoding);
        let text = |id| self.view().pieces().text(id).unwrap().to_vec();
        tokens
            .into_iter()
            .map(|id| String::from_utf8(text(id)).unwrap())
            .collect()
    }

    pub(crate) fn decode(&self, tokens: &[u32], specials: Specials) -> Vec<u8> {
        let mut decoder = Decoder::new(*self.view().pieces(), specials);
        tokens
            .iter()
            .flat_map(|&id| decoder.next(id).unwrap())
            .collect()
    }
}

/// Neither BOS nor EOS, no special token, no byte lost.
pub(crate) const EXACT: Encoding = Encoding {
    ends: false,
    special: false,
    loss: Loss::Refused,
};

/// As `EXACT`, bytes lost as llama.cpp loses them.
pub(crate) const LOSSY: Encoding = Encoding {
    loss: Loss::Allowed,
    ..EXACT
};

/// GPT-2's letter of a byte, as its own code makes it: the printable ones are themselves, the others are counted.
pub(crate) fn letter(byte: u8) -> char {
    let own = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    match own(byte) {
        true => char::from(byte),
        false => {
            let before = (0..byte).filter(|&byte| !own(byte)).count();
            char::from_u32(256 + before as u32).unwrap()
        }
    }
}

/// A text in GPT-2's letters.
pub(crate) fn letters(text: &str) -> String {
    text.bytes().map(letter).collect()
}

/// The texts of a byte-level vocabulary: a token a byte, then a token for each merge of two texts, then `more`.
pub(crate) fn byte_level(merges: &[(&str, &str)], more: &[&str]) -> (Vec<String>, Vec<String>) {
    let bytes = (0..=255).map(|byte| letter(byte).to_string());
    let merged = merges
        .iter()
        .map(|(left, right)| letters(left) + &letters(right));
    let tokens = bytes
        .chain(merged)
        .chain(more.iter().map(|text| (*text).to_owned()));
    let mut names = Vec::new();
    for (left, right) in merges {
        let mut name = letters(left);
        let _ = write!(name, " {}", letters(right));
        names.push(name);
    }
    (tokens.collect(), names)
}

pub(crate) fn slices(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
