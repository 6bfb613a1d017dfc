//! A checkpoint's vocabulary, combined from all files that describe it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tercet_core::gguf::{Reader, Sink, WriteError, Writer};

use super::config::Config;
use super::json::Object;
use super::special::{self, Specials};
use super::{bpe, sentencepiece};
use crate::Error;
use crate::language::tokenizer::Tokenizer;
use crate::language::vocabulary::{Lists, Merging, TokenKind, Vocabulary};

const FORMAT: &str = "Hugging Face tokenizer";

/// The content of a tokenizer's own file.
#[derive(Debug)]
pub(super) struct Pieces {
    /// Text and kind by number; there may be gaps.
    pub(super) tokens: BTreeMap<u32, (String, TokenKind)>,
    pub(super) merging: Merging,
    pub(super) unknown: Option<u32>,
    /// The tokens that it puts before and after a text, if stated.
    pub(super) template: Option<Template>,
}

/// The tokens before and after a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) before: Option<u32>,
    pub(super) after: Option<u32>,
}

/// Tokens outside a tokenizer's own list: number, text, and true if it is a mark and no text.
pub(super) type Added = BTreeMap<u32, (String, bool)>;

/// Reads the vocabulary, and returns the files that were read.
pub(super) fn read(
    folder: &Path,
    named: Option<&Path>,
    config_json: &Object,
    config: &Config,
) -> Result<(Vocabulary, Vec<PathBuf>), Error> {
    let count = config.parameters.vocab_size;
    let path = file(folder, named)?;
    let settings = Object::open(folder.join("tokenizer_config.json"))?;
    let generation = Object::open(folder.join("generation_config.json"))?;
    let pieces = match path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        true => bpe::read(&path)?,
        false => sentencepiece::read(&path)?,
    };
    let bad = |reason: String| Error::bad(&path, FORMAT, reason);
    let Pieces {
        mut tokens,
        merging,
        unknown,
        template,
    } = pieces;
    let older = Object::open(folder.join("added_tokens.json"))?;
    for (id, (text, is_mark)) in special::added(older.as_ref(), settings.as_ref())? {
        // A tokenizer's own unknown token and bytes do not change.
        let fixed = matches!(
            tokens.get(&id),
            Some((_, TokenKind::Unknown | TokenKind::Byte))
        );
        if !fixed {
            tokens.insert(id, (text, special::kind(is_mark)));
        }
    }
    // Checkpoints often name a padding token but have no row for it: no text has it.
    let filler = special::padding(settings.as_ref());
    tokens.retain(|&id, (text, _)| id < count || Some(text.as_str()) != filler);
    if let Some((id, (text, _))) = tokens.range(count..).next() {
        return Err(bad(format!(
            "token {id}, `{text}`, is beyond the {count} of the embedding (vocab_size)"
        )));
    }
    let ids: HashMap<&str, u32> = (tokens.iter())
        .map(|(&id, (text, _))| (text.as_str(), id))
        .collect();
    let specials = Specials::read(settings.as_ref(), generation.as_ref(), config_json, &ids)?;
    let chat_template = special::template(folder, settings.as_ref())?;
    let is_spm = matches!(merging, Merging::Spm { .. });
    let flag = |key: &str| match &settings {
        Some(settings) => settings.flag(key),
        None => Ok(None),
    };
    let bos = specials
        .bos
        .or(template.and_then(|template| template.before));
    let before = template.map(|template| template.before.is_some());
    let add_bos = flag("add_bos_token")?.or(before).unwrap_or(is_spm);
    let after = template.map(|template| template.after.is_some());
    let add_eos = flag("add_eos_token")?.or(after).unwrap_or(false);
    let eos = specials
        .eos
        .or(template.and_then(|template| template.after));
    for (adds, token, name) in [(add_bos, bos, "begins"), (add_eos, eos, "ends")] {
        if adds && token.is_none() {
            return Err(bad(format!(
                "a text {name} with a token that no file names"
            )));
        }
    }
    if let Some(template) = template {
        for (adds, own, token) in [
            (add_bos, template.before, bos),
            (add_eos, template.after, eos),
        ] {
            if let (true, Some(own), Some(token)) = (adds, own, token)
                && own != token
            {
                return Err(bad(format!(
                    "its post_processor puts token {own} around a text, but tokenizer_config.json names {token}"
                )));
            }
        }
    }
    let (texts, kinds) = whole(tokens, count);
    let vocabulary = Vocabulary {
        merging: match merging {
            Merging::Spm {
                mut scores,
                add_space_prefix,
            } => {
                // Tokens in no list of merges never result from one.
                scores.resize(texts.len(), 0.0);
                Merging::Spm {
                    scores,
                    add_space_prefix,
                }
            }
            merging => merging,
        },
        tokens: texts,
        kinds,
        bos,
        eos,
        eot: specials.eot,
        eom: specials.eom,
        unknown: specials.unknown.or(unknown),
        padding: specials.padding,
        add_bos,
        add_eos,
        chat_template,
    };
    if let Some(reason) = vocabulary.refusal() {
        return Err(bad(reason));
    }
    check(&vocabulary).map_err(bad)?;
    let read = [settings, generation, older].into_iter().flatten();
    let mut files: Vec<PathBuf> = read.map(|file| file.path().to_path_buf()).collect();
    files.push(path);
    Ok((vocabulary, files))
}

/// Returns the tokenizer's own file. A SentencePiece model has the sources of its JSON, including scores.
fn file(folder: &Path, named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(named) = named {
        return Ok(named.to_path_buf());
    }
    let paths = ["tokenizer.model", "tokenizer.json"].map(|name| folder.join(name));
    let found = paths.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| {
        let reason = "it has neither tokenizer.model nor tokenizer.json";
        Error::unsupported(folder, reason)
    })
}

/// Returns texts and kinds of `count` tokens: a number without a text is padding of the embedding.
fn whole(
    mut tokens: BTreeMap<u32, (String, TokenKind)>,
    count: u32,
) -> (Vec<String>, Vec<TokenKind>) {
    let token = |id: u32| {
        let unused = || (format!("[PAD{id}]"), TokenKind::Unused);
        tokens.remove(&id).unwrap_or_else(unused)
    };
    (0..count).map(token).unzip()
}

/// Checks that core can read the vocabulary, as far as it can tell before a text comes, and llama.cpp, which aborts if
/// a byte has no token.
fn check(vocabulary: &Vocabulary) -> Result<(), String> {
    if let Merging::Spm { .. } = vocabulary.merging {
        let tokens = vocabulary.tokens.iter().zip(&vocabulary.kinds);
        let bytes = tokens.filter(|(_, kind)| **kind == TokenKind::Byte);
        let known: HashSet<&str> = bytes.map(|(text, _)| text.as_str()).collect();
        let mut texts = (0..=255).map(|byte| format!("<0x{byte:02X}>"));
        if let Some(text) = texts.find(|text| !known.contains(text.as_str())) {
            return Err(format!(
                "it has no token {text} for text that no other token covers"
            ));
        }
    }
    let lists = Lists::new(vocabulary);
    let entries = lists.entries();
    let mut file = Bytes(Vec::new());
    let said = |error: WriteError<_>| error.to_string();
    let mut writer = Writer::new(&mut file, entries.len() as u64, &[]).map_err(said)?;
    for (key, value) in &entries {
        writer.entry(key, *value).map_err(said)?;
    }
    let data = writer.into_data().map_err(said)?;
    data.finish().map_err(|error| error.to_string())?;
    let reader = Reader::new(&file.0).map_err(|error| error.to_string())?;
    let tokenizer = Tokenizer::read(&reader, &file.0, None);
    tokenizer.map(|_| ()).map_err(|error| error.to_string())
}

/// A file in memory.
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = std::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Returns the number in a JSON value.
pub(super) fn id_of(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}
