//! Special tokens, and the conversation template: the data beside a tokenizer's own file.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::json::{Object, short};
use super::text::{Added, id_of};
use crate::Error;
use crate::language::vocabulary::TokenKind;

/// Tokens with a meaning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Specials {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) eot: Option<u32>,
    pub(super) eom: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) padding: Option<u32>,
}

impl Specials {
    /// `ids` are the tokens' numbers by their texts.
    pub(super) fn read(
        settings: Option<&Object>,
        generation: Option<&Object>,
        config: &Object,
        ids: &HashMap<&str, u32>,
    ) -> Result<Self, Error> {
        let named = |key: &str| match settings {
            Some(settings) => by_text(settings, key, ids),
            None => Ok(None),
        };
        let own = |key: &str| match config.get(key) {
            // If there are several, none represents all.
            Some(Value::Array(_)) | None => Ok(None),
            Some(_) => config.count(key),
        };
        let mut ends = match generation {
            Some(generation) => numbers(generation, "eos_token_id")?,
            None => Vec::new(),
        };
        if ends.is_empty() {
            ends = numbers(config, "eos_token_id")?;
        }
        let eos = named("eos_token")?.or(ends.first().copied());
        ends.retain(|&end| Some(end) != eos);
        let is_message = |end: &u32| ids.get("<|eom_id|>") == Some(end);
        let eom = ends.iter().copied().find(is_message);
        ends.retain(|&end| Some(end) != eom);
        if ends.len() > 1 {
            let (file, count) = (generation.unwrap_or(config), ends.len());
            return Err(file.unsupported(format!(
                "eos_token_id has {count} tokens besides the tokenizer's own that end a text; a GGUF file names one"
            )));
        }
        Ok(Self {
            bos: named("bos_token")?.or(own("bos_token_id")?),
            eos,
            eot: ends.first().copied(),
            eom,
            unknown: named("unk_token")?,
            padding: match padding(settings) {
                Some(text) => ids.get(text).copied(),
                None => own("pad_token_id")?.filter(|id| ids.values().any(|known| known == id)),
            },
        })
    }
}

/// Returns the number of the token whose text a field has, plainly or as `content`.
fn by_text(settings: &Object, key: &str, ids: &HashMap<&str, u32>) -> Result<Option<u32>, Error> {
    let text = match settings.get(key) {
        None => return Ok(None),
        Some(Value::String(text)) => text.as_str(),
        Some(value) => value
            .get("content")
            .and_then(Value::as_str)
            .ok_or_else(|| {
                let value = short(value);
                settings.bad(format!("{key} is {value}, not a token"))
            })?,
    };
    match ids.get(text) {
        Some(&id) => Ok(Some(id)),
        None => Err(settings.bad(format!("{key} is `{text}`, which is not a token"))),
    }
}

/// Reads a number or a list of numbers.
fn numbers(file: &Object, key: &str) -> Result<Vec<u32>, Error> {
    let bad = |value: &Value| {
        let value = short(value);
        file.bad(format!("{key} is {value}, not a token's number or several"))
    };
    match file.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(all)) => all
            .iter()
            .map(|value| id_of(value).ok_or_else(|| bad(value)))
            .collect(),
        Some(value) => Ok(vec![id_of(value).ok_or_else(|| bad(value))?]),
    }
}

/// Returns the kind of a token that is split from texts.
pub(super) const fn kind(is_mark: bool) -> TokenKind {
    match is_mark {
        true => TokenKind::Control,
        false => TokenKind::UserDefined,
    }
}

/// Returns the text of the token that pads batches.
pub(super) fn padding(settings: Option<&Object>) -> Option<&str> {
    let value = settings?.get("pad_token")?;
    value.as_str().or_else(|| value.get("content")?.as_str())
}

/// Reads `added_tokens.json`, and before it `added_tokens_decoder`: tokens by number.
pub(super) fn added(older: Option<&Object>, settings: Option<&Object>) -> Result<Added, Error> {
    let mut added = Added::new();
    if let Some(older) = older {
        for (text, id) in older.fields() {
            let id = id_of(id).ok_or_else(|| older.bad(format!("`{text}` has no number")))?;
            added.insert(id, (text.clone(), false));
        }
    }
    let all = match settings {
        Some(settings) => settings.object("added_tokens_decoder")?,
        None => None,
    };
    let Some(all) = all else {
        return Ok(added);
    };
    for (key, _) in all.fields() {
        let bad = || all.bad(format!("{} is not the number of a token", all.name(key)));
        let id: u32 = key.parse().map_err(|_| bad())?;
        let Some(token) = all.object(key)? else {
            continue;
        };
        added.insert(id, one(&token)?);
    }
    Ok(added)
}

/// Reads a token in the form of both files of a checkpoint: its text, and true if it is a mark.
pub(super) fn one(token: &Object) -> Result<(String, bool), Error> {
    for key in ["lstrip", "rstrip", "single_word"] {
        token.only(key, &[Value::Bool(false)])?;
    }
    let text = token.text("content")?;
    let text = text.ok_or_else(|| token.bad(format!("{} is missing", token.name("content"))))?;
    let is_mark = token.flag("special")?.unwrap_or(false);
    Ok((text.to_owned(), is_mark))
}

/// Returns the conversation template: a separate file has precedence over the settings.
pub(super) fn template(folder: &Path, settings: Option<&Object>) -> Result<Option<String>, Error> {
    let path = folder.join("chat_template.jinja");
    match fs::read_to_string(&path) {
        Ok(text) => return Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io(&path, "read")(error)),
    }
    let Some(settings) = settings else {
        return Ok(None);
    };
    match settings.get("chat_template") {
        Some(Value::Array(_)) => {
            // There are several by name; one of them is for plain conversations.
            for template in settings.objects("chat_template")? {
                if template.text("name")? == Some("default") {
                    return Ok(template.text("template")?.map(str::to_owned));
                }
            }
            Err(settings.unsupported("chat_template has no template named default"))
        }
        _ => Ok(settings.text("chat_template")?.map(str::to_owned)),
    }
}
