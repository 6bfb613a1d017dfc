//! The tokens of a conversation: only the template can make control tokens.
//!
//! A template's text and the messages end up in one text, and a vocabulary's control tokens are texts too. So the
//! messages are searched for control tokens before. If a message contains one, or could form one with the template's
//! text beside it, a mark that occurs nowhere else is inserted, and control tokens that contain such a mark are not
//! recognized. Then the marks are removed. A conversation without any such text is rendered unchanged, and its tokens
//! are those of llama.cpp with special tokens parsed.

use std::collections::HashMap;

use tercet_core::model::tokenizer::Encoding;

use super::message::Message;
use super::template::{Template, TokenTexts};
use crate::Error;
use crate::language::tokenizer::{Specials, TokenKind, Tokenizer};

/// A template with a model's vocabulary.
#[derive(Debug)]
pub struct Prompts<'t> {
    template: &'t Template,
    tokenizer: &'t Tokenizer,
    texts: TokenTexts,
    controls: Controls,
}

impl<'t> Prompts<'t> {
    /// Looks up a vocabulary's control tokens.
    pub fn new(template: &'t Template, tokenizer: &'t Tokenizer) -> Self {
        let vocabulary = tokenizer.vocabulary();
        let text = |id: Option<u32>| {
            let bytes = id.and_then(|id| tokenizer.decode(&[id], Specials::Shown).ok());
            String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
        };
        let texts = TokenTexts {
            bos: text(vocabulary.bos()),
            eos: text(vocabulary.eos()),
            unknown: text(vocabulary.unknown()),
            padding: text(vocabulary.padding()),
        };
        Self {
            template,
            tokenizer,
            texts,
            controls: Controls::of(tokenizer),
        }
    }

    /// Returns the tokenizer.
    pub fn tokenizer(&self) -> &'t Tokenizer {
        self.tokenizer
    }

    /// Returns the tokens of a conversation, followed by the beginning of an answer. If the vocabulary says so, they
    /// begin with the token that begins texts, once.
    ///
    /// # Errors
    /// Those of [`Template::render`]; [`Error::Options`] for text that the tokenizer refuses, and for no tokens at all.
    pub fn tokens(&self, messages: &[Message]) -> Result<Vec<u32>, Error> {
        let said = messages.iter().map(|message| message.content.as_str());
        let signs = Signs::beside(said.chain([self.template.source()])).ok_or_else(|| {
            Error::options(
                "the messages use every character that is reserved to mark control tokens",
            )
        })?;
        let marked = messages.iter().map(|message| {
            let content = self.controls.marked(&message.content, signs);
            Message::new(message.role, content)
        });
        let text = self
            .template
            .render(&marked.collect::<Vec<_>>(), &self.texts, true)?;
        let mut tokens = self.encode(&text, signs)?;
        let vocabulary = self.tokenizer.vocabulary();
        if let Some(bos) = vocabulary.bos()
            && vocabulary.adds_bos()
            && tokens.first() != Some(&bos)
        {
            tokens.insert(0, bos);
        }
        if tokens.is_empty() {
            return Err(Error::options("the chat template produces no text"));
        }
        Ok(tokens)
    }

    fn encode(&self, text: &str, signs: Signs) -> Result<Vec<u32>, Error> {
        let part = |text: &str, special: bool| {
            let encoding = Encoding {
                ends: false,
                special,
                ..Encoding::default()
            };
            let tokens = self.tokenizer.encode(text.as_bytes(), encoding);
            tokens.map_err(|error| Error::options(error.to_string()))
        };
        if !text.contains([signs.within, signs.before]) {
            return part(text, true);
        }
        let mut tokens = Vec::new();
        let mut from = 0;
        for (at, control) in self.controls.found(text) {
            // An earlier match reaches beyond its beginning, or it is plain text.
            let is_said = text[..at].ends_with(signs.before);
            if at < from || is_said {
                continue;
            }
            tokens.extend(part(&signs.without(&text[from..at]), false)?);
            tokens.push(control.id);
            from = at + control.text.len();
        }
        tokens.extend(part(&signs.without(&text[from..]), false)?);
        Ok(tokens)
    }
}

/// Two characters that occur in no message and not in the template.
#[derive(Clone, Copy, Debug)]
struct Signs {
    /// Inserted into the text of a control token.
    within: char,
    /// Inserted before the text of a control token that is a single character.
    before: char,
}

impl Signs {
    /// Chosen from Unicode's private use area in plane 15.
    fn beside<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Option<Self> {
        let mut free =
            ('\u{F0000}'..='\u{FFFFD}').filter(|&sign| texts.clone().all(|it| !it.contains(sign)));
        Some(Self {
            within: free.next()?,
            before: free.next()?,
        })
    }

    fn without(self, text: &str) -> String {
        text.replace([self.within, self.before], "")
    }
}

#[derive(Debug)]
struct Control {
    text: String,
    id: u32,
}

/// Control tokens, and the unknown one, by their first byte, the longest first.
#[derive(Debug)]
struct Controls(HashMap<u8, Vec<Control>>);

impl Controls {
    fn of(tokenizer: &Tokenizer) -> Self {
        let view = tokenizer.view();
        let pieces = view.pieces();
        let mut all: HashMap<u8, Vec<Control>> = HashMap::new();
        for id in 0..tokenizer.vocabulary().tokens() {
            let cut = matches!(
                pieces.kind(id),
                Some(TokenKind::Control | TokenKind::Unknown)
            );
            // Text that is not UTF-8 occurs in no message and no template.
            let text = pieces.text(id).filter(|_| cut);
            let text = text.and_then(|text| std::str::from_utf8(text).ok());
            if let Some(text) = text
                && let Some(&first) = text.as_bytes().first()
            {
                let text = text.to_owned();
                all.entry(first).or_default().push(Control { text, id });
            }
        }
        for controls in all.values_mut() {
            controls.sort_by_key(|control| std::cmp::Reverse(control.text.len()));
        }
        Self(all)
    }

    /// Returns the places of control tokens in a text: at each place the longest.
    fn found<'c>(&'c self, text: &'c str) -> impl Iterator<Item = (usize, &'c Control)> {
        let places = text.bytes().enumerate();
        places.filter_map(|(at, byte)| {
            let mut controls = self.0.get(&byte)?.iter();
            let found =
                controls.find(|it| text.as_bytes()[at..].starts_with(it.text.as_bytes()))?;
            Some((at, found))
        })
    }

    /// Returns a message with marks, so that no control token can be found in it, or in its combination with a text
    /// before and after it.
    fn marked(&self, said: &str, signs: Signs) -> String {
        let mut text = String::with_capacity(said.len());
        let mut from = 0;
        for (at, control) in self.found(said) {
            let mut chars = control.text.chars();
            let first = chars.next().map_or(0, char::len_utf8);
            text.push_str(&said[from..at]);
            if self.is_single(&said[at..at + first]) {
                text.push(signs.before);
            }
            text.push_str(&said[at..at + first]);
            if chars.next().is_some() {
                text.push(signs.within);
            }
            from = at + first;
        }
        text.push_str(&said[from..]);
        // Templates often remove the blanks around a message.
        let body = said.trim();
        let blanks = |text: &str, trimmed: &str| text.len() - trimmed.len();
        if self.any(|control| ends_in(control, body)) {
            let at = blanks(&text, text.trim_start());
            text.insert(at, signs.within);
        }
        if self.any(|control| begins_in(control, body)) {
            let at = text.trim_end().len();
            text.insert(at, signs.within);
        }
        text
    }

    /// True if a character by itself is a control token.
    fn is_single(&self, character: &str) -> bool {
        let same = self.0.get(&character.as_bytes()[0]).into_iter().flatten();
        same.into_iter().any(|control| control.text == character)
    }

    fn any(&self, holds: impl Fn(&str) -> bool) -> bool {
        self.0
            .values()
            .flatten()
            .any(|control| holds(&control.text))
    }
}

/// True if a text begins with the end of a control token, or is a part of one.
fn ends_in(control: &str, body: &str) -> bool {
    let mut ends = control.char_indices().skip(1);
    !body.is_empty()
        && (control.contains(body) || ends.any(|(at, _)| body.starts_with(&control[at..])))
}

/// True if a text ends with the beginning of a control token.
fn begins_in(control: &str, body: &str) -> bool {
    let mut ends = control.char_indices().skip(1);
    ends.any(|(at, _)| body.ends_with(&control[..at]))
}
