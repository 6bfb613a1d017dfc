//! The vocabulary of a model, as stored in the metadata of a GGUF file.

use std::collections::{HashMap, HashSet};

use tercet_core::gguf::{Reader, Value};

use crate::file::gguf::Pair;

/// The kind of a token, with GGUF's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum TokenKind {
    /// A piece of text.
    Normal = 1,
    /// Replaces text that no token covers.
    Unknown = 2,
    /// A mark that is no text, such as the beginning of a sequence.
    Control = 3,
    /// A piece of text that is matched before all others.
    UserDefined = 4,
    /// A number without a meaning.
    Unused = 5,
    /// One byte, written `<0xNN>`.
    Byte = 6,
}

impl TokenKind {
    /// Returns the kind of GGUF's number; an invalid number counts as text.
    fn of(number: &Value<'_>) -> Self {
        let kinds = [
            Self::Normal,
            Self::Unknown,
            Self::Control,
            Self::UserDefined,
            Self::Unused,
            Self::Byte,
        ];
        let found = match number {
            Value::I32(number) => kinds.into_iter().find(|kind| *kind as i32 == *number),
            _ => None,
        };
        found.unwrap_or(Self::Normal)
    }
}

/// How pieces of a text become tokens.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Merging {
    /// SentencePiece: the neighbours whose union has the highest score merge first; `▁` (U+2581) is the blank.
    Spm {
        /// A score for each token.
        scores: Vec<f32>,
        /// True if a blank is put before a text.
        add_space_prefix: bool,
    },
    /// Byte-level BPE: tokens are bytes in GPT-2's letters, and merge in the order of a list.
    Bpe {
        /// llama.cpp's name of the rule that splits a text into words, such as `gpt-2`.
        pre: String,
        /// Pairs of tokens separated by a blank, the first to merge first; empty for a vocabulary of bytes.
        merges: Vec<String>,
    },
}

/// The tokens of a model and how they are used.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary {
    /// The text of each token; all are different.
    pub tokens: Vec<String>,
    /// The kind of each token.
    pub kinds: Vec<TokenKind>,
    /// How texts become tokens.
    pub merging: Merging,
    /// The token before a sequence.
    pub bos: Option<u32>,
    /// The token after a sequence.
    pub eos: Option<u32>,
    /// The token after a turn of a conversation, if it is a different one.
    pub eot: Option<u32>,
    /// The token after a message, if it is a third one.
    pub eom: Option<u32>,
    /// The token for text that no other token covers.
    pub unknown: Option<u32>,
    /// The token that pads short sequences.
    pub padding: Option<u32>,
    /// True if a text begins with `bos`.
    pub add_bos: bool,
    /// True if a text ends with `eos`.
    pub add_eos: bool,
    /// A template of conversations, in Jinja.
    pub chat_template: Option<String>,
}

impl Vocabulary {
    /// Returns a vocabulary of the 256 bytes, numbered by the byte, then `<|bos|>`, `<|eos|>` and `<|pad|>`.
    ///
    /// ```
    /// let vocabulary = tercet_host::language::Vocabulary::bytes();
    /// assert_eq!((vocabulary.tokens.len(), vocabulary.tokens[65].as_str()), (259, "A"));
    /// assert_eq!(vocabulary.tokens[32], "Ġ"); // GPT-2's letter for the blank
    /// ```
    pub fn bytes() -> Self {
        let mut tokens: Vec<String> = (0..=255).map(|byte| letter(byte).to_string()).collect();
        tokens.extend(["<|bos|>", "<|eos|>", "<|pad|>"].map(str::to_owned));
        let mut kinds = vec![TokenKind::Normal; 256];
        kinds.extend([TokenKind::Control; 3]);
        Self {
            tokens,
            kinds,
            merging: Merging::Bpe {
                pre: "gpt-2".into(),
                merges: Vec::new(),
            },
            bos: Some(256),
            eos: Some(257),
            eot: None,
            eom: None,
            unknown: None,
            padding: Some(258),
            add_bos: true,
            add_eos: false,
            chat_template: None,
        }
    }

    /// Returns [`Vocabulary::bytes`], followed by the tokens that pairs of tokens merge into, the first to merge first.
    /// A pair whose text is already a token adds none. Texts are split as by GPT-2.
    ///
    /// ```
    /// let vocabulary = tercet_host::language::Vocabulary::merged(&[(104, 105), (32, 259)]);
    /// assert_eq!(vocabulary.tokens[259..], ["hi", "Ġhi"]);
    /// ```
    ///
    /// # Panics
    /// If a pair names a token that does not exist yet.
    pub fn merged(pairs: &[(u32, u32)]) -> Self {
        let mut vocabulary = Self::bytes();
        let mut known: HashSet<String> = vocabulary.tokens.iter().cloned().collect();
        let mut merges = Vec::with_capacity(pairs.len());
        for &(left, right) in pairs {
            let parts = [left, right].map(|token| vocabulary.tokens[token as usize].clone());
            merges.push(parts.join(" "));
            let text = parts.concat();
            if known.insert(text.clone()) {
                vocabulary.tokens.push(text);
                vocabulary.kinds.push(TokenKind::Normal);
            }
        }
        vocabulary.merging = Merging::Bpe {
            pre: "gpt-2".into(),
            merges,
        };
        vocabulary
    }

    /// Returns the vocabulary of a model's file, to write another file with it.
    ///
    /// # Errors
    /// In one line: missing keys, keys of another type, and vocabularies other than SentencePiece and byte-level BPE.
    pub fn read(reader: &Reader<'_>) -> Result<Self, String> {
        let value = |key: &str| reader.get(&format!("tokenizer.ggml.{key}"));
        let list = |key: &str| {
            let array = value(key).and_then(|value| value.as_array());
            array.ok_or_else(|| format!("tokenizer.ggml.{key} is missing or not a list"))
        };
        let texts = |key: &str| -> Result<Vec<String>, String> {
            let items = list(key)?.iter();
            let texts = items.map(|item| item.as_str().map(str::to_owned));
            let texts: Option<_> = texts.collect();
            texts.ok_or_else(|| format!("tokenizer.ggml.{key} is not a list of texts"))
        };
        let flag = |key: &str| match value(key) {
            Some(Value::Bool(flag)) => Some(flag),
            _ => None,
        };
        let id = |key: &str| value(key)?.as_u64()?.try_into().ok();
        let tokens = texts("tokens")?;
        let kinds = match list("token_type") {
            Ok(kinds) => kinds.iter().map(|kind| TokenKind::of(&kind)).collect(),
            Err(_) => vec![TokenKind::Normal; tokens.len()],
        };
        let (merging, adds_bos) = match value("model").and_then(|value| value.as_str()) {
            Some("gpt2") => {
                let pre = value("pre").and_then(|value| value.as_str());
                let pre = pre.unwrap_or("gpt-2").to_owned();
                let merges = texts("merges").unwrap_or_default();
                (Merging::Bpe { pre, merges }, false)
            }
            Some("llama") => {
                let scores = list("scores")?.iter().map(|score| match score {
                    Value::F32(score) => Some(score),
                    _ => None,
                });
                let scores: Option<_> = scores.collect();
                let merging = Merging::Spm {
                    scores: scores.ok_or("tokenizer.ggml.scores is not a list of f32")?,
                    add_space_prefix: flag("add_space_prefix").unwrap_or(true),
                };
                (merging, true)
            }
            other => {
                let other = other.unwrap_or("missing");
                return Err(format!(
                    "tokenizer.ggml.model is {other}, not gpt2 or llama"
                ));
            }
        };
        let template = reader.get("tokenizer.chat_template");
        Ok(Self {
            tokens,
            kinds,
            merging,
            bos: id("bos_token_id"),
            eos: id("eos_token_id"),
            eot: id("eot_token_id"),
            eom: id("eom_token_id"),
            unknown: id("unknown_token_id"),
            padding: id("padding_token_id"),
            add_bos: flag("add_bos_token").unwrap_or(adds_bos),
            add_eos: flag("add_eos_token").unwrap_or(false),
            chat_template: template.and_then(|text| text.as_str().map(str::to_owned)),
        })
    }

    /// Returns in one line why no program can read the vocabulary.
    pub(crate) fn refusal(&self) -> Option<String> {
        let count = self.tokens.len();
        if self.kinds.len() != count {
            let kinds = self.kinds.len();
            return Some(format!("{count} tokens have {kinds} kinds"));
        }
        let mut seen = HashMap::with_capacity(count);
        for (index, token) in self.tokens.iter().enumerate() {
            if let Some(first) = seen.insert(token, index) {
                return Some(format!("tokens {first} and {index} are both `{token}`"));
            }
        }
        match &self.merging {
            Merging::Spm { scores, .. } => {
                if scores.len() != count {
                    return Some(format!("{count} tokens have {} scores", scores.len()));
                }
                if let Some(index) = scores.iter().position(|score| !score.is_finite()) {
                    return Some(format!("the score of token {index} is not finite"));
                }
            }
            Merging::Bpe { merges, .. } => {
                // The first character may itself be a blank.
                let pair = |merge: &String| merge.char_indices().skip(1).any(|(_, c)| c == ' ');
                if let Some(index) = merges.iter().position(|merge| !pair(merge)) {
                    return Some(format!("merge {index} is not a pair: `{}`", merges[index]));
                }
            }
        }
        let special = self.specials().into_iter();
        let mut special = special.filter_map(|(name, id)| Some((name, id?)));
        let (name, id) = special.find(|(_, id)| *id as usize >= count)?;
        Some(format!("{name} is {id}, but there are {count} tokens"))
    }

    fn specials(&self) -> [(&'static str, Option<u32>); 6] {
        [
            ("bos_token_id", self.bos),
            ("eos_token_id", self.eos),
            ("unknown_token_id", self.unknown),
            ("padding_token_id", self.padding),
            ("eot_token_id", self.eot),
            ("eom_token_id", self.eom),
        ]
    }
}

/// The lists of a vocabulary, as metadata borrows them.
pub(crate) struct Lists<'a> {
    vocabulary: &'a Vocabulary,
    tokens: Vec<&'a str>,
    kinds: Vec<i32>,
    merges: Vec<&'a str>,
}

impl<'a> Lists<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary) -> Self {
        let merges = match &vocabulary.merging {
            Merging::Bpe { merges, .. } => merges.as_slice(),
            Merging::Spm { .. } => &[],
        };
        Self {
            vocabulary,
            tokens: vocabulary.tokens.iter().map(String::as_str).collect(),
            kinds: vocabulary.kinds.iter().map(|&kind| kind as i32).collect(),
            merges: merges.iter().map(String::as_str).collect(),
        }
    }

    pub(crate) fn entries(&'a self) -> Vec<Pair<'a>> {
        let vocabulary = self.vocabulary;
        let key = |key: &str| format!("tokenizer.ggml.{key}");
        let tokens = (key("tokens"), Value::from(&self.tokens[..]));
        let kinds = (key("token_type"), Value::from(&self.kinds[..]));
        let mut entries = match &vocabulary.merging {
            Merging::Spm {
                scores,
                add_space_prefix,
            } => vec![
                (key("model"), Value::String("llama")),
                tokens,
                (key("scores"), Value::from(&scores[..])),
                kinds,
                (key("add_space_prefix"), Value::Bool(*add_space_prefix)),
            ],
            Merging::Bpe { pre, .. } => vec![
                (key("model"), Value::String("gpt2")),
                (key("pre"), Value::String(pre)),
                tokens,
                kinds,
                (key("merges"), Value::from(&self.merges[..])),
            ],
        };
        let specials = vocabulary.specials().into_iter();
        entries.extend(specials.filter_map(|(name, id)| Some((key(name), Value::U32(id?)))));
        entries.push((key("add_bos_token"), Value::Bool(vocabulary.add_bos)));
        if vocabulary.add_eos {
            entries.push((key("add_eos_token"), Value::Bool(true)));
        }
        let template = vocabulary.chat_template.as_deref();
        entries.extend(template.map(|text| ("tokenizer.chat_template".into(), text.into())));
        entries
    }
}

/// Returns GPT-2's letter for a byte: the byte itself if it is printable, otherwise the next character from U+0100 on.
fn letter(byte: u8) -> char {
    let prints = |byte: &u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    if prints(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !prints(byte)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}
