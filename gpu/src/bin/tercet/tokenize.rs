//! `tercet tokenize`: converts text to a model's tokens, and back.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use serde::Serialize;
use tercet_host::language::tokenizer::{Encoding, Loss, Specials, TokenKind, Tokenizer};
use tercet_host::{Error, TensorFile};

use crate::failure::Failure;
use crate::table::{Align, Table};
use crate::{format, output};

const EXAMPLES: &str = "\
Examples:
  tercet tokenize model.gguf 'Once upon a time'
  tercet tokenize model.gguf --file chat.txt --special          <|im_start|> and the like are tokens
  tercet tokenize model.gguf - --json < text | jq '.tokens[].id'
  tercet tokenize model.gguf --decode 1 9038 2501 263 931

Tokens are the same as llama.cpp's, for tokenizers of kind llama (SPM) and gpt2 (byte-level BPE with the \
pre-tokenizers gpt-2, smollm, llama-bpe, qwen2 and those that cut texts as they do). In the pieces shown, quotes, \
control characters and bytes that are not characters are escaped. --decode writes the bytes unchanged; only on a \
terminal a line break follows.

JSON (--json): bytes, count, tokens[] (id, piece, kind); of --decode: count, text. In piece and text, bytes that are \
no characters are U+FFFD.";

/// Show the tokens that a GGUF model makes of a text, or the text of tokens
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("input").args(["text", "file", "decode"]).required(true))]
pub(crate) struct Arguments {
    /// A GGUF file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The text, whose bytes need not be UTF-8; - reads standard input
    #[arg(value_name = "TEXT")]
    text: Option<OsString>,
    /// Read the text from this file, whose bytes need not be UTF-8
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the text of these tokens
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',', conflicts_with_all = ["no_bos", "exact"])]
    decode: Vec<u32>,
    /// Add neither BOS nor EOS, whatever the model says
    #[arg(long)]
    no_bos: bool,
    /// Read special tokens in the text as these tokens; with --decode, show their texts
    #[arg(long)]
    special: bool,
    /// Keep bytes that are not UTF-8, which llama.cpp replaces in byte-level vocabularies; a byte without a token is an
    /// error
    #[arg(long)]
    exact: bool,
    /// Split the text as the pre-tokenizer of that name does, whatever the model says (see tokenizer.ggml.pre)
    #[arg(long, value_name = "NAME")]
    pre: Option<String>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Encoded {
    bytes: usize,
    count: usize,
    tokens: Vec<Token>,
}

#[derive(Debug, Serialize)]
struct Token {
    id: u32,
    piece: String,
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct Decoded {
    count: usize,
    text: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = TensorFile::open(&arguments.model)?;
    let tokenizer =
        Tokenizer::open(&model, arguments.pre.as_deref()).map_err(|error| match error {
            // The name comes from the command line.
            Error::BadFile { reason, .. }
                if arguments.pre.is_some() && reason.contains("pre names") =>
            {
                Failure::usage(format_args!("--pre: {reason}"))
            }
            error => Failure::from(error),
        })?;
    match arguments.decode.as_slice() {
        [] => encode(arguments, &tokenizer),
        tokens => decode(arguments, &tokenizer, tokens),
    }
}

fn encode(arguments: &Arguments, tokenizer: &Tokenizer) -> Result<(), Failure> {
    let text = text(arguments)?;
    let encoding = Encoding {
        ends: !arguments.no_bos,
        special: arguments.special,
        loss: if arguments.exact {
            Loss::Refused
        } else {
            Loss::Allowed
        },
    };
    let tokens = tokenizer.encode(&text, encoding).map_err(Failure::new)?;
    let view = tokenizer.view();
    let piece = |id: u32| -> Vec<u8> {
        let piece = view.pieces().piece(id, Specials::Shown);
        piece.map(Iterator::collect).unwrap_or_default()
    };
    let kind = |id: u32| word(view.pieces().kind(id).unwrap_or_default());
    if arguments.json {
        return output::json(&Encoded {
            bytes: text.len(),
            count: tokens.len(),
            tokens: tokens
                .iter()
                .map(|&id| Token {
                    id,
                    piece: String::from_utf8_lossy(&piece(id)).into_owned(),
                    kind: kind(id),
                })
                .collect(),
        });
    }
    let mut table = Table::new(&[
        ("id", Align::Right),
        ("piece", Align::Left),
        ("kind", Align::Left),
    ]);
    for &id in &tokens {
        table.row([id.to_string(), escaped(&piece(id)), kind(id).to_owned()]);
    }
    let mut report = table.render();
    let _ = writeln!(
        report,
        "\n{} of {}",
        format::counted(tokens.len() as u64, "token"),
        format::counted(text.len() as u64, "byte"),
    );
    output::text(&report)
}

fn decode(arguments: &Arguments, tokenizer: &Tokenizer, tokens: &[u32]) -> Result<(), Failure> {
    let specials = match arguments.special {
        true => Specials::Shown,
        false => Specials::Hidden,
    };
    let mut text = tokenizer.decode(tokens, specials).map_err(Failure::new)?;
    if arguments.json {
        return output::json(&Decoded {
            count: tokens.len(),
            text: String::from_utf8_lossy(&text).into_owned(),
        });
    }
    if io::stdout().is_terminal() {
        text.push(b'\n');
    }
    output::bytes(&text)
}

/// Returns the text in question.
fn text(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    match (&arguments.file, &arguments.text) {
        (Some(path), _) => fs::read(path).map_err(|error| Failure::io(path, "read", &error)),
        (None, Some(text)) if text == "-" => {
            let mut text = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut text);
            read.map_err(|error| {
                Failure::new(format_args!("cannot read standard input: {error}"))
            })?;
            Ok(text)
        }
        (None, Some(text)) => Ok(text.as_encoded_bytes().to_vec()),
        (None, None) => Ok(Vec::new()),
    }
}

/// Describes the kind of a token.
fn word(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Undefined => "undefined",
        TokenKind::Normal => "normal",
        TokenKind::Unknown => "unknown",
        TokenKind::Control => "control",
        TokenKind::UserDefined => "user-defined",
        TokenKind::Unused => "unused",
        TokenKind::Byte => "byte",
    }
}

/// Formats bytes in quotes, safe for a terminal.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '"' | '\\' => text.extend(['\\', char]),
                char if char.is_control() => text.extend(char.escape_default()),
                char => text.push(char),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_shown_in_one_line_whatever_their_bytes() {
        let bytes = b" a\n\x1b[2J\"\\\xc3\xe4\xb8\xad\xff";
        assert_eq!(escaped(bytes), r#"" a\n\u{1b}[2J\"\\\xc3中\xff""#);
        assert_eq!(escaped(b""), "\"\"");
    }
}
