//! A model's conversation template in Jinja: converts messages to the text format that the model was trained on.

use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, ErrorKind, context};

use super::message::Message;
use crate::Error;
use crate::language::LanguageFile;

/// The key of the template in a GGUF file.
pub const TEMPLATE_KEY: &str = "tokenizer.chat_template";

/// The name of the template in the template engine.
const NAME: &str = "chat";

/// Maximum number of instructions of a rendering: common templates take some fifty for each message. This ends a
/// template that would never end.
const FUEL: u64 = 2_000_000;

/// The texts of a vocabulary's special tokens, which templates write; empty if there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenTexts {
    /// The token that begins texts, `bos_token`.
    pub bos: String,
    /// The token that ends texts, `eos_token`.
    pub eos: String,
    /// The unknown token, `unk_token`.
    pub unknown: String,
    /// The padding token, `pad_token`.
    pub padding: String,
}

/// A parsed template.
///
/// It is Jinja with the settings of Hugging Face's `apply_chat_template`: blocks remove their line end and the blanks
/// before them on the line, `raise_exception` refuses, and methods of Python's strings and maps, `break` and `continue`
/// are supported. Not supported: `strftime_now`, `tools`, `documents`, and the tag `generation`.
///
/// ```
/// use tercet_host::language::chat::{Message, Role, Template, TokenTexts};
///
/// let source = "{% for m in messages %}<|{{ m.role }}|>{{ m['content'].strip() }}\n{% endfor %}\
///     {% if add_generation_prompt %}<|assistant|>{% endif %}";
/// let template = Template::new(source, "chat.jinja".as_ref())?;
/// let said = [Message::new(Role::User, " Hello? ")];
/// assert_eq!(template.render(&said, &TokenTexts::default(), true)?, "<|user|>Hello?\n<|assistant|>");
/// # Ok::<(), tercet_host::Error>(())
/// ```
#[derive(Debug)]
pub struct Template {
    engine: Environment<'static>,
    source: String,
    path: PathBuf,
}

impl Template {
    /// Parses a template; `path` is the file that holds it, for messages.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the line that is not valid Jinja.
    pub fn new(source: &str, path: &Path) -> Result<Self, Error> {
        let mut engine = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        let refuse = |error: &minijinja::Error| refused(path, error);
        engine.set_syntax(syntax.map_err(|error| refuse(&error))?);
        engine.set_auto_escape_callback(|_| AutoEscape::None);
        engine.set_fuel(Some(FUEL));
        engine.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        engine.add_function("raise_exception", |reason: String| -> Result<Value, _> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, reason))
        });
        engine.add_filter("tojson", tojson);
        engine
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| refuse(&error))?;
        Ok(Self {
            engine,
            source: source.to_owned(),
            path: path.to_path_buf(),
        })
    }

    /// Returns the template of a model's file; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::BadFile`]; those of [`Template::new`].
    pub fn of(file: &LanguageFile) -> Result<Option<Self>, Error> {
        let reader = file.reader()?;
        let source = reader.get(TEMPLATE_KEY).and_then(|value| value.as_str());
        source
            .map(|source| Self::new(source, file.path()))
            .transpose()
    }

    /// Returns its text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the text of a conversation, followed by the beginning of an answer if `answer` is true.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for messages that the template refuses, with its message, and for a template that calls
    /// unsupported functions or does not end within two million steps.
    pub fn render(
        &self,
        messages: &[Message],
        texts: &TokenTexts,
        answer: bool,
    ) -> Result<String, Error> {
        let said = messages.iter().map(|message| {
            context! {
                role => message.role.name(),
                content => message.content.as_str(),
            }
        });
        let given = context! {
            messages => said.collect::<Vec<Value>>(),
            add_generation_prompt => answer,
            bos_token => texts.bos.as_str(),
            eos_token => texts.eos.as_str(),
            unk_token => texts.unknown.as_str(),
            pad_token => texts.padding.as_str(),
        };
        let template = self.engine.get_template(NAME);
        template
            .and_then(|template| template.render(given))
            .map_err(|error| refused(&self.path, &error))
    }
}

fn refused(path: &Path, error: &minijinja::Error) -> Error {
    let line = error
        .line()
        .map_or_else(String::new, |line| format!(", line {line}"));
    let detail = error.detail().unwrap_or_default();
    let reason = match error.kind() {
        ErrorKind::InvalidOperation if !detail.is_empty() => detail.to_owned(),
        ErrorKind::OutOfFuel => format!("it does not end within {FUEL} steps"),
        // With a date in it, the same conversation would be another text tomorrow.
        ErrorKind::UnknownFunction if detail.contains("strftime_now") => {
            "it asks for today's date (`strftime_now`), which is not given: the same conversation is the same text on every day"
                .to_owned()
        }
        kind if detail.is_empty() => kind.to_string(),
        kind => format!("{kind}: {detail}"),
    };
    let cause = std::error::Error::source(error);
    let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    Error::unsupported(path, format!("the chat template{line}: {reason}{cause}"))
}

/// Writes JSON without unnecessary escapes, as Hugging Face does; the engine's own function is for HTML pages.
fn tojson(
    value: &Value,
    indent: Option<Value>,
    options: minijinja::value::Kwargs,
) -> Result<Value, minijinja::Error> {
    let escaped = minijinja::filters::tojson(value, indent, options)?;
    let mut text = String::new();
    let mut rest = escaped.as_str().unwrap_or_default();
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let plain = [
            ("\\u003c", "<"),
            ("\\u003e", ">"),
            ("\\u0026", "&"),
            ("\\u0027", "'"),
        ];
        let found = plain.iter().find(|(code, _)| from.starts_with(code));
        // Otherwise copy the backslash and the next character, which may be another backslash.
        let (taken, written) = found.map_or((2, from.get(..2)), |(code, plain)| {
            (code.len(), Some(plain))
        });
        text.push_str(written.unwrap_or_default());
        rest = from.get(taken..).unwrap_or_default();
    }
    text.push_str(rest);
    Ok(Value::from_safe_string(text))
}
