//! `tokenizer.json` of the `tokenizers` library: byte-level BPE, or BPE of characters with byte fallback.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::json::{Object, short};
use super::merges;
use super::special;
use super::text::{Pieces, Template, id_of};
use crate::Error;
use crate::language::vocabulary::{Merging, TokenKind};

/// SentencePiece's blank.
const BLANK: &str = "\u{2581}";
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// Patterns that core supports; true if pieces that are tokens skip their merges; llama.cpp's name of both.
const PATTERNS: [(&str, bool, &str); 4] = [
    (GPT2, false, "gpt-2"),
    (LLAMA3, true, "llama-bpe"),
    (LLAMA3, false, "smaug-bpe"),
    (QWEN2, false, "qwen2"),
];

pub(super) fn read(path: &Path) -> Result<Pieces, Error> {
    let file = Object::open(path.to_path_buf())?
        .ok_or_else(|| Error::unsupported(path, "there is no such file"))?;
    let model = file
        .object("model")?
        .ok_or_else(|| file.bad("model is missing"))?;
    let kind = model.text("type")?.unwrap_or("BPE");
    if kind != "BPE" {
        return Err(file.unsupported(format!("model.type = \"{kind}\" is not supported; BPE is")));
    }
    model.only("dropout", &[0.into(), 0.0.into()])?;
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        model.only(key, &["".into()])?;
    }
    let mut tokens = vocabulary(&model)?;
    let ids = |tokens: &BTreeMap<u32, (String, TokenKind)>, text: &str| {
        let mut all = tokens.iter();
        all.find(|(_, (token, _))| token == text).map(|(&id, _)| id)
    };
    let unknown = model.text("unk_token")?.and_then(|text| ids(&tokens, text));
    let steps = leaves(&file, "pre_tokenizer", "pretokenizers")?;
    let is_bytes = steps
        .iter()
        .any(|step| step.text("type").ok().flatten() == Some("ByteLevel"));
    let pairs = pairs(&model)?;
    let merging = match is_bytes {
        true => bytes(&file, &model, &steps, &pairs)?,
        false => {
            let prefix = characters(&file, &model, &steps)?;
            for (text, kind) in tokens.values_mut() {
                if is_byte(text) {
                    *kind = TokenKind::Byte;
                }
            }
            let scores = merges::scores(&tokens, &pairs).map_err(|reason| file.bad(reason))?;
            Merging::Spm {
                scores,
                add_space_prefix: prefix,
            }
        }
    };
    for token in file.objects("added_tokens")? {
        let id = token.needed("id")?;
        let (text, is_mark) = special::one(&token)?;
        tokens.insert(id, (text, special::kind(is_mark)));
    }
    if let Some((_, kind)) = unknown.and_then(|id| tokens.get_mut(&id))
        && matches!(merging, Merging::Spm { .. })
    {
        *kind = TokenKind::Unknown;
    }
    Ok(Pieces {
        template: template(&file)?,
        tokens,
        merging,
        unknown,
    })
}

/// Returns the tokens by number.
fn vocabulary(model: &Object) -> Result<BTreeMap<u32, (String, TokenKind)>, Error> {
    let vocab = model.object("vocab")?;
    let vocab = vocab.ok_or_else(|| model.bad("model.vocab is missing"))?;
    let mut tokens = BTreeMap::new();
    for (text, id) in vocab.fields() {
        let id = id_of(id).ok_or_else(|| {
            let id = short(id);
            model.bad(format!("model.vocab: the number of `{text}` is {id}"))
        })?;
        if let Some((first, _)) = tokens.insert(id, (text.clone(), TokenKind::Normal)) {
            return Err(model.bad(format!(
                "model.vocab: `{first}` and `{text}` both have the number {id}"
            )));
        }
    }
    Ok(tokens)
}

/// Returns the merges, given as `a b` or as `[a, b]`.
fn pairs(model: &Object) -> Result<Vec<(&str, &str)>, Error> {
    let all = model.list("merges")?.unwrap_or_default();
    let mut pairs = Vec::with_capacity(all.len());
    for (rank, value) in all.iter().enumerate() {
        let pair = match value {
            // The first character may itself be a blank.
            Value::String(text) => (text.char_indices().skip(1))
                .find(|(_, c)| *c == ' ')
                .map(|(at, _)| (&text[..at], &text[at + 1..])),
            Value::Array(two) => match two.as_slice() {
                [Value::String(a), Value::String(b)] => Some((a.as_str(), b.as_str())),
                _ => None,
            },
            _ => None,
        };
        let whole = pair.filter(|(a, b)| !a.contains(' ') && !b.contains(' '));
        pairs.push(whole.ok_or_else(|| {
            let value = short(value);
            model.bad(format!("merge {rank} is not a pair: {value}"))
        })?);
    }
    Ok(pairs)
}

/// Returns the steps of an object that is a sequence, or the object itself as the only step.
fn leaves(file: &Object, key: &str, inner: &str) -> Result<Vec<Object>, Error> {
    let Some(step) = file.object(key)? else {
        return Ok(Vec::new());
    };
    if step.text("type")? != Some("Sequence") {
        return Ok(vec![step]);
    }
    step.objects(inner)
}

/// Returns how a byte-level vocabulary merges, with llama.cpp's name of its pre-tokenizer.
fn bytes(
    file: &Object,
    model: &Object,
    steps: &[Object],
    pairs: &[(&str, &str)],
) -> Result<Merging, Error> {
    if let Some(step) = leaves(file, "normalizer", "normalizers")?.first() {
        let kind = step.text("type")?.unwrap_or_default();
        return Err(file.unsupported(format!(
            "normalizer {kind} is not supported: bytes are tokenized as they are"
        )));
    }
    model.only("byte_fallback", &[Value::Bool(false)])?;
    let ignores = model.flag("ignore_merges")?.unwrap_or(false);
    let mut pattern = None;
    let mut by_digits = false;
    let mut own = false;
    for step in steps {
        match step.text("type")?.unwrap_or_default() {
            "ByteLevel" => {
                step.only("add_prefix_space", &[Value::Bool(false)])?;
                own = step.flag("use_regex")?.unwrap_or(true);
            }
            "Digits" => {
                step.only("individual_digits", &[Value::Bool(true)])?;
                by_digits = step.flag("individual_digits")?.unwrap_or(false);
            }
            "Split" => {
                step.only("behavior", &["Isolated".into()])?;
                step.only("invert", &[Value::Bool(false)])?;
                let regex = step.object("pattern")?;
                let regex = match &regex {
                    Some(regex) => regex.text("Regex")?,
                    None => None,
                };
                let regex = regex.ok_or_else(|| file.bad("pre_tokenizer: Split has no Regex"))?;
                if let Some(first) = pattern.replace(regex.to_owned()) {
                    return Err(file.unsupported(format!(
                        "pre_tokenizer has two patterns, `{first}` and `{regex}`; only one is supported"
                    )));
                }
            }
            other => {
                return Err(file.unsupported(format!("pre_tokenizer {other} is not supported")));
            }
        }
    }
    let pre = match (&pattern, by_digits, own) {
        (None, true, true) if !ignores => Some("smollm"),
        (None, false, true) if !ignores => Some("gpt-2"),
        (Some(pattern), false, false) => PATTERNS
            .iter()
            .find(|(known, ignoring, _)| known == pattern && *ignoring == ignores)
            .map(|(.., name)| *name),
        _ => None,
    };
    let pre = pre.ok_or_else(|| {
        let pattern = pattern.as_deref().unwrap_or("of ByteLevel");
        let digits = if by_digits { ", digits alone" } else { "" };
        file.unsupported(format!(
            "pre_tokenizer with the pattern `{pattern}`{digits}, ignore_merges = {ignores}, is not supported"
        ))
    })?;
    Ok(Merging::Bpe {
        pre: pre.into(),
        merges: pairs.iter().map(|(a, b)| format!("{a} {b}")).collect(),
    })
}

/// Returns whether a blank is put before a text, if characters are merged and blanks are `▁`.
fn characters(file: &Object, model: &Object, steps: &[Object]) -> Result<bool, Error> {
    if model.flag("byte_fallback")? != Some(true) {
        return Err(file.unsupported(
            "it is neither byte-level (pre_tokenizer ByteLevel) nor has byte tokens \
             for text that no other token covers (model.byte_fallback)",
        ));
    }
    model.only("ignore_merges", &[Value::Bool(false)])?;
    let mut prefix = None;
    let mut blanks = false;
    for step in leaves(file, "normalizer", "normalizers")? {
        match step.text("type")?.unwrap_or_default() {
            "Prepend" => {
                step.only("prepend", &[BLANK.into()])?;
                prefix = Some(true);
            }
            "Replace" => {
                step.only("content", &[BLANK.into()])?;
                step.only("pattern", &[serde_json::json!({"String": " "})])?;
                blanks = true;
            }
            other => {
                return Err(file.unsupported(format!("normalizer {other} is not supported")));
            }
        }
    }
    for step in steps {
        match step.text("type")?.unwrap_or_default() {
            "Metaspace" if prefix.is_none() && !blanks => {
                step.only("replacement", &[BLANK.into()])?;
                if step.flag("split")? != Some(false) {
                    return Err(file.unsupported(
                        "pre_tokenizer Metaspace with split = true is not supported: words are not cut before merging",
                    ));
                }
                prefix = match step.text("prepend_scheme")? {
                    Some("never") => Some(false),
                    Some("first" | "always") => Some(true),
                    other => {
                        let other = other.unwrap_or("missing");
                        return Err(file.unsupported(format!(
                            "pre_tokenizer Metaspace: prepend_scheme {other} is not supported"
                        )));
                    }
                };
                blanks = true;
            }
            other => {
                return Err(
                    file.unsupported(format!("pre_tokenizer {other} is not supported here"))
                );
            }
        }
    }
    if !blanks {
        return Err(file.unsupported("neither normalizer nor pre_tokenizer turns blanks into `▁`"));
    }
    Ok(prefix.unwrap_or(false))
}

/// True if a text is that of a byte, `<0xNN>`.
fn is_byte(text: &str) -> bool {
    let digits = text
        .strip_prefix("<0x")
        .and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}

/// Returns the tokens that the post-processor puts around a single text.
fn template(file: &Object) -> Result<Option<Template>, Error> {
    let mut found = None;
    for step in leaves(file, "post_processor", "processors")? {
        match step.text("type")?.unwrap_or_default() {
            "ByteLevel" => {}
            "TemplateProcessing" => found = Some(around(&step)?),
            other => {
                return Err(file.unsupported(format!("post_processor {other} is not supported")));
            }
        }
    }
    Ok(found)
}

fn around(step: &Object) -> Result<Template, Error> {
    let mut found = Template::default();
    let mut seen = false;
    for part in step.objects("single")? {
        let Some(special) = part.object("SpecialToken")? else {
            seen = true;
            continue;
        };
        let name = special.text("id")?.unwrap_or_default();
        let known = step.object("special_tokens")?;
        let token = match &known {
            Some(known) => known.object(name)?,
            None => None,
        };
        let ids = match &token {
            Some(token) => token.list("ids")?.unwrap_or_default(),
            None => &[],
        };
        let slot = if seen {
            &mut found.after
        } else {
            &mut found.before
        };
        match (ids, slot.is_none()) {
            ([id], true) => *slot = id_of(id),
            _ => {
                return Err(step.unsupported(format!(
                    "post_processor puts `{name}` around a text; one token before it and one after it are supported"
                )));
            }
        }
    }
    Ok(found)
}
