//! The vocabulary of llama2.c, `tokenizer.bin`: the length of the longest token, then a score, a length and the text of
//! each token.

use std::path::Path;

use crate::Error;
use crate::language::vocabulary::{Merging, TokenKind, Vocabulary};

const FORMAT: &str = "llama2.c tokenizer";
/// SentencePiece's blank.
const BLANK: &str = "\u{2581}";
/// The tokens with a meaning in llama2.c, by number. The file has other texts for them: `\n<s>\n` for 1.
const SPECIALS: [(&str, TokenKind); 3] = [
    ("<unk>", TokenKind::Unknown),
    ("<s>", TokenKind::Control),
    ("</s>", TokenKind::Control),
];
/// The number of the token of byte 0.
const BYTES: usize = SPECIALS.len();

/// Reads `count` tokens from all of `bytes`, which begin at `start` of the file.
pub(super) fn read(
    path: &Path,
    bytes: &[u8],
    start: usize,
    count: usize,
) -> Result<Vocabulary, Error> {
    let bad = |reason: String| Error::bad(path, FORMAT, reason);
    let mut rest = bytes;
    let offset = |rest: &[u8]| start + bytes.len() - rest.len();
    let longest = word(&mut rest)
        .ok_or_else(|| bad(format!("it ends inside its first number at offset {start}")))?;
    let longest = u32::from_le_bytes(longest);
    // A token takes at least 8 bytes, so no list is longer than the file.
    let room = count.min(bytes.len() / 8);
    let (mut tokens, mut kinds) = (Vec::with_capacity(room), Vec::with_capacity(room));
    let mut scores = Vec::with_capacity(room);
    for index in 0..count {
        let at = offset(rest);
        let cut = || {
            bad(format!(
                "it ends in token {index} of {count}, at offset {at}"
            ))
        };
        let score = f32::from_le_bytes(word(&mut rest).ok_or_else(cut)?);
        let len = u32::from_le_bytes(word(&mut rest).ok_or_else(cut)?);
        if len > longest {
            return Err(bad(format!(
                "token {index} at offset {at} has {len} bytes, but the longest may have {longest}"
            )));
        }
        if !score.is_finite() {
            return Err(bad(format!(
                "the score of token {index} at offset {at} is not finite"
            )));
        }
        let (text, after) = rest.split_at_checked(len as usize).ok_or_else(cut)?;
        let text = std::str::from_utf8(text)
            .map_err(|_| bad(format!("token {index} at offset {at} is not UTF-8")))?;
        rest = after;
        let (text, kind) = match (SPECIALS.get(index), byte(index, text)) {
            (Some(&(text, kind)), _) => (text.to_owned(), kind),
            (None, Some(byte)) => (format!("<0x{byte:02X}>"), TokenKind::Byte),
            (None, None) => (text.replace(' ', BLANK), TokenKind::Normal),
        };
        tokens.push(text);
        kinds.push(kind);
        scores.push(score);
    }
    if !rest.is_empty() {
        let (left, at) = (rest.len(), offset(rest));
        return Err(bad(format!(
            "{left} bytes follow its {count} tokens, at offset {at}"
        )));
    }
    let vocabulary = Vocabulary {
        tokens,
        kinds,
        merging: Merging::Spm {
            scores,
            add_space_prefix: true,
        },
        unknown: Some(0),
        bos: Some(1),
        eos: Some(2),
        eot: None,
        eom: None,
        padding: None,
        add_bos: true,
        add_eos: false,
        chat_template: None,
    };
    match vocabulary.refusal() {
        Some(reason) => Err(bad(reason)),
        None => Ok(vocabulary),
    }
}

/// Returns the byte of a byte token: `<0xNN>`, or in older files the character with that number, if it is at the byte's
/// own place.
fn byte(index: usize, text: &str) -> Option<u8> {
    let byte = u8::try_from(index.checked_sub(BYTES)?).ok()?;
    let mut chars = text.chars();
    let older = (chars.next(), chars.next()) == (Some(char::from(byte)), None);
    (older || text == format!("<0x{byte:02X}>")).then_some(byte)
}

/// Removes four bytes from the front.
fn word(rest: &mut &[u8]) -> Option<[u8; 4]> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*word)
}
