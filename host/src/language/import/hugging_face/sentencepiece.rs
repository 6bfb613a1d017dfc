//! `tokenizer.model`: a SentencePiece model; its kind BPE is called `llama` in GGUF.
//!
//! Fields and their defaults are those of SentencePiece's `sentencepiece_model.proto`.

use std::collections::BTreeMap;
use std::path::Path;

use super::protobuf::Message;
use super::text::Pieces;
use crate::Error;
use crate::file::map::Map;
use crate::language::vocabulary::{Merging, TokenKind};

const FORMAT: &str = "SentencePiece";
/// A field of `ModelProto`.
const PIECES: u64 = 1;
const TRAINER: u64 = 2;
const NORMALIZER: u64 = 3;
/// A field of `TrainerSpec`.
const MODEL_TYPE: u64 = 3;
const WHITESPACE_AS_SUFFIX: u64 = 24;
const UNIGRAM: u64 = 1;
const BPE: u64 = 2;
/// A field of `NormalizerSpec`.
const CHARSMAP: u64 = 2;
const DUMMY_PREFIX: u64 = 3;
const EXTRA_WHITESPACES: u64 = 4;
const ESCAPE_WHITESPACES: u64 = 5;

pub(super) fn read(path: &Path) -> Result<Pieces, Error> {
    let map = Map::open(path)?;
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let unsupported = |reason: &str| Error::unsupported(path, reason);
    let model = Message::new(map.bytes());
    let mut tokens = BTreeMap::new();
    let mut scores = Vec::new();
    for field in model.clone() {
        let (number, field) = field.map_err(bad)?;
        if number == PIECES {
            let index = scores.len();
            let bytes = field.bytes();
            let bytes = bytes.ok_or_else(|| bad(format!("piece {index} is not a message")))?;
            let place = |reason: String| bad(format!("piece {index}: {reason}"));
            let (text, score, kind) = piece(bytes).map_err(place)?;
            tokens.insert(index as u32, (text, kind));
            scores.push(score);
        }
    }
    if tokens.is_empty() {
        return Err(bad("it has no pieces".into()));
    }
    let spec = |number: u64| -> Result<Message<'_>, Error> {
        let found = model.value(number).map_err(bad)?;
        let bytes = found.and_then(|field| field.bytes());
        Ok(Message::new(bytes.unwrap_or_default()))
    };
    let (trainer, normalizer) = (spec(TRAINER)?, spec(NORMALIZER)?);
    let integer = |message: &Message<'_>, number: u64, otherwise: u64| -> Result<u64, Error> {
        let found = message.value(number).map_err(bad)?;
        Ok(found.and_then(|field| field.integer()).unwrap_or(otherwise))
    };
    match integer(&trainer, MODEL_TYPE, UNIGRAM)? {
        BPE => {}
        UNIGRAM => return Err(unsupported("it is of kind unigram; only BPE is supported")),
        _ => {
            return Err(unsupported(
                "it is of kind words or characters; only BPE is supported",
            ));
        }
    }
    if integer(&trainer, WHITESPACE_AS_SUFFIX, 0)? != 0 {
        return Err(unsupported("treat_whitespace_as_suffix is not supported"));
    }
    let rules = normalizer.value(CHARSMAP).map_err(bad)?;
    if rules
        .and_then(|field| field.bytes())
        .is_some_and(|rules| !rules.is_empty())
    {
        return Err(unsupported(
            "its normalizer replaces characters (precompiled_charsmap), which is not supported",
        ));
    }
    if integer(&normalizer, EXTRA_WHITESPACES, 1)? != 0 {
        return Err(unsupported("remove_extra_whitespaces is not supported"));
    }
    if integer(&normalizer, ESCAPE_WHITESPACES, 1)? == 0 {
        return Err(unsupported(
            "blanks that are not `▁` (escape_whitespaces) are not supported",
        ));
    }
    let unknown = (tokens.iter()).find(|(_, (_, kind))| *kind == TokenKind::Unknown);
    Ok(Pieces {
        unknown: unknown.map(|(&id, _)| id),
        tokens,
        merging: Merging::Spm {
            scores,
            add_space_prefix: integer(&normalizer, DUMMY_PREFIX, 1)? != 0,
        },
        template: None,
    })
}

/// Returns text, score and kind of a piece.
fn piece(bytes: &[u8]) -> Result<(String, f32, TokenKind), String> {
    let (mut text, mut score, mut kind) = (None, 0.0, TokenKind::Normal);
    for field in Message::new(bytes) {
        match field? {
            (1, field) => {
                let bytes = field
                    .bytes()
                    .ok_or("its text is missing or of the wrong type")?;
                let whole = std::str::from_utf8(bytes).map_err(|_| "its text is not UTF-8")?;
                text = Some(whole.to_owned());
            }
            (2, field) => score = field.float().ok_or("its score is not a float")?,
            (3, field) => {
                kind = match field.integer() {
                    Some(1) => TokenKind::Normal,
                    Some(2) => TokenKind::Unknown,
                    Some(3) => TokenKind::Control,
                    Some(4) => TokenKind::UserDefined,
                    Some(5) => TokenKind::Unused,
                    Some(6) => TokenKind::Byte,
                    _ => return Err("its type is not one of 1 to 6".into()),
                }
            }
            _ => {}
        }
    }
    Ok((text.ok_or("it has no text")?, score, kind))
}
