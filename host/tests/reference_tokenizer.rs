//! Tokenizers against llama.cpp: its library on random texts, and the inputs and outputs that it keeps beside its
//! vocabularies.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tercet_core::block::Format;
use tercet_core::gguf::Reader;
use tercet_core::number::Random;
use tercet_host::language::tokenizer::{Encoding, Loss, Specials, Tokenizer, TokenizerError};
use tercet_host::{DType, TensorFile};

use crate::{reference_models, support};

const SCRIPT: &str = "tokenizer.py";

/// Vocabularies that must be among those found, so that a comparison of none is no success.
const EXPECTED: &[&str] = &[
    "ggml-vocab-gpt-2.gguf",
    "ggml-vocab-llama-bpe.gguf",
    "ggml-vocab-llama-spm.gguf",
    "ggml-vocab-qwen2.gguf",
    "ggml-vocab-starcoder.gguf",
];

/// Where every code point is compared: all vocabularies of a kind share the classes.
const THOROUGH: &[&str] = &["ggml-vocab-gpt-2.gguf", "ggml-vocab-llama-spm.gguf"];

/// Names of models whose special tokens llama.cpp lets swallow spaces; the tokenizer's metadata says nothing of it.
const BY_NAME: &[&str] = &["ggml-vocab-phi-3.gguf"];

/// The vocabularies that Tercet reads, by file name. Those of other kinds are refused by the entry that says so.
fn vocabularies(folder: &Path) -> Vec<(PathBuf, Tokenizer)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "gguf"))
        .collect();
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let reader = Reader::inspect(&bytes).unwrap();
        match Tokenizer::read(&reader, &bytes, None) {
            Ok(tokenizer) => found.push((path, tokenizer)),
            Err(
                TokenizerError::Model
                | TokenizerError::Pre
                | TokenizerError::Missing {
                    key: "tokenizer.ggml.pre",
                },
            ) => {}
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
    for name in EXPECTED {
        assert!(
            found.iter().any(|(path, _)| path.ends_with(name)),
            "no {name}"
        );
    }
    found
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// A text, and whether special tokens are added and parsed.
struct Case {
    text: Vec<u8>,
    ends: bool,
    special: bool,
}

fn below(random: &mut Random, limit: u32) -> u32 {
    random.below(limit.into()) as u32
}

/// Words, spaces, marks, special tokens, scripts and bytes that are no characters, in any order.
fn texts(random: &mut Random) -> Vec<u8> {
    const WORDS: &[&str] = &[
        "a",
        "the",
        "The",
        "hello",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "'s",
        "'S",
        "'LL",
        "'re",
        "1",
        "23",
        "4567",
        "½",
        "Ⅷ",
        "٣",
        "é",
        "ß",
        "中",
        "日本",
        "한국",
        "ру",
        "हि",
        "ع",
        "🦀",
        "👩‍👩‍👧",
        "\u{301}",
        "!",
        "?",
        "...",
        "<s>",
        "</s>",
        "<unk>",
        "<|endoftext|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|end_of_text|>",
        "<repo_name>",
        "▁",
        "▁▁",
        "<0x41>",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\0",
        "\u{7f}",
    ];
    const SCRIPTS: &[(u32, u32)] = &[
        (0x20, 0x7F),
        (0xC0, 0x250),
        (0x370, 0x530),
        (0x5D0, 0x700),
        (0x900, 0xA00),
        (0xE00, 0xE50),
        (0x3040, 0x3100),
        (0x4E00, 0xA000),
        (0xAC00, 0xD7A4),
        (0xD800, 0xE000),
        (0x1D400, 0x1D800),
        (0x1F300, 0x1FB00),
        (0, 0x11_0000),
    ];
    const BYTES: &[u8] = b"\x80\xbf\xc3\xe1\xe2\xed\xa0\xef\xf1\x9f\x96\x81\xf3\xf8\xff A";
    let mut text = Vec::new();
    for _ in 0..below(random, 25) {
        match below(random, 10) {
            0..6 => text.extend(WORDS[below(random, WORDS.len() as u32) as usize].as_bytes()),
            6 | 7 => {
                let (from, to) = SCRIPTS[below(random, SCRIPTS.len() as u32) as usize];
                for _ in 0..1 + below(random, 8) {
                    push(&mut text, from + below(random, to - from));
                }
            }
            8 => text.push(BYTES[below(random, BYTES.len() as u32) as usize]),
            _ => {
                let word = WORDS[below(random, WORDS.len() as u32) as usize];
                text.extend(word.repeat(1 + below(random, 60) as usize).as_bytes());
            }
        }
    }
    text
}

/// A code point in UTF-8, surrogates too.
fn push(text: &mut Vec<u8>, point: u32) {
    match char::from_u32(point) {
        Some(char) => text.extend(char.encode_utf8(&mut [0; 4]).as_bytes()),
        None => text.extend([
            0xED,
            0x80 | (point >> 6 & 0x3F) as u8,
            0x80 | (point & 0x3F) as u8,
        ]),
    }
}

/// What is compared: 4,000 short texts, a megabyte in one text, and, if `thorough`, every code point between letters.
///
/// No byte is used that could begin a number beyond Unicode or an overlong form: llama.cpp 0.5 ends the program at
/// the one and reads the other, 0.7 replaces the bytes of both, as we do.
fn cases(thorough: bool) -> Vec<Case> {
    let mut random = Random::new(4);
    let mut cases: Vec<Case> = (0..4000)
        .map(|case| Case {
            text: texts(&mut random),
            ends: case & 1 == 1,
            special: case & 2 == 2,
        })
        .collect();
    for special in [false, true] {
        let mut text = Vec::new();
        while text.len() < 1 << 20 {
            text.extend(texts(&mut random));
        }
        cases.push(Case {
            text,
            ends: true,
            special,
        });
    }
    for first in (0..if thorough { 0x11_0000 } else { 0 }).step_by(1 << 12) {
        let mut text = Vec::new();
        for point in first..first + (1 << 12) {
            text.push(b'a');
            push(&mut text, point);
            text.extend(b"b ");
        }
        cases.push(Case {
            text,
            ends: false,
            special: false,
        });
    }
    cases
}

/// The tokens of a case.
fn tokens(tokenizer: &Tokenizer, case: &Case) -> Vec<u32> {
    let encoding = Encoding {
        ends: case.ends,
        special: case.special,
        loss: Loss::Allowed,
    };
    tokenizer.encode(&case.text, encoding).unwrap()
}

/// What the script writes of a token.
fn pieces(tokenizer: &Tokenizer, token: u32) -> String {
    let view = tokenizer.view();
    let [hidden, shown] = [Specials::Hidden, Specials::Shown].map(|specials| {
        let piece = view.pieces().piece(token, specials).unwrap();
        piece.map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    format!("{token}|{hidden}|{shown}")
}

/// Compares a tokenizer with that of llama.cpp for the same file, on [`cases`].
fn compare(path: &Path, tokenizer: &Tokenizer, python: &Path, ggml: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let (texts, out) = (temporary.path().join("cases"), temporary.path().join("out"));
    let cases = cases(THOROUGH.iter().any(|name| path.ends_with(name)));
    let mut bytes = Vec::new();
    for case in &cases {
        bytes.extend((case.text.len() as u32).to_le_bytes());
        bytes.push(u8::from(case.ends) | u8::from(case.special) << 1);
        bytes.extend(&case.text);
    }
    fs::write(&texts, bytes).unwrap();
    let library = ggml.parent().unwrap();
    let arguments = [library, path, &texts, &out].map(|path| OsString::from(path.as_os_str()));
    support::run(python, SCRIPT, arguments);
    let found = fs::read_to_string(&out).unwrap();
    let mut lines = found.lines();
    let mut seen = BTreeSet::new();
    let mut count = 0;
    for case in &cases {
        let ids = lines.next().unwrap().split_whitespace();
        let theirs: Vec<u32> = ids.map(|id| id.parse().unwrap()).collect();
        let ours = tokens(tokenizer, case);
        let text = &case.text[..case.text.len().min(200)];
        assert!(
            ours == theirs,
            "{}: {:?}",
            name(path),
            String::from_utf8_lossy(text)
        );
        count += ours.len();
        seen.extend(ours);
    }
    assert_eq!(lines.next(), Some(""));
    for &token in &seen {
        assert_eq!(
            lines.next(),
            Some(&*pieces(tokenizer, token)),
            "{}",
            name(path)
        );
    }
    assert_eq!(lines.next(), None);
    println!(
        "{}: {} texts, {count} tokens and the pieces of {} equal",
        name(path),
        cases.len(),
        seen.len()
    );
}

#[test]
fn tokens_and_pieces_are_llama_cpp_s() {
    let Some(python) = support::python() else {
        return;
    };
    let (Some(ggml), Some(folder)) = (support::ggml(), support::vocabularies()) else {
        return;
    };
    for (path, tokenizer) in vocabularies(&folder) {
        if !BY_NAME.iter().any(|name| path.ends_with(name)) {
            compare(&path, &tokenizer, &python, &ggml);
        }
    }
}

#[test]
fn tokens_and_pieces_of_models_are_llama_cpp_s() {
    let Some(python) = support::python() else {
        return;
    };
    let (Some(ggml), Some(folder)) = (support::ggml(), support::models()) else {
        return;
    };
    let temporary = tempfile::tempdir().unwrap();
    let stories = temporary.path().join("stories15M.gguf");
    reference_models::stories(&folder, DType::Block(Format::Q8_0), &stories);
    for path in [stories, reference_models::smollm2(&folder)] {
        let tokenizer = Tokenizer::open(&TensorFile::open(&path).unwrap(), None).unwrap();
        compare(&path, &tokenizer, &python, &ggml);
    }
}

/// Outputs are of Hugging Face's tokenizers, or SentencePiece's; llama.cpp is tested against them.
#[test]
fn tokens_of_llama_cpp_s_own_inputs_are_its_outputs() {
    let Some(folder) = support::vocabularies() else {
        return;
    };
    let mut compared = 0;
    for (path, tokenizer) in vocabularies(&folder) {
        let beside = |end: &str| fs::read_to_string(format!("{}.{end}", path.display()));
        let (Ok(inputs), Ok(outputs)) = (beside("inp"), beside("out")) else {
            continue;
        };
        let inputs = inputs.split("\n__ggml_vocab_test__\n");
        for (text, ids) in inputs.zip(outputs.lines()) {
            let ids: Vec<u32> = ids
                .split_whitespace()
                .map(|id| id.parse().unwrap())
                .collect();
            let encoding = Encoding {
                ends: false,
                ..Encoding::default()
            };
            let tokens = tokenizer.encode(text.as_bytes(), encoding).unwrap();
            assert_eq!(tokens, ids, "{}: {text:?}", name(&path));
            compared += 1;
        }
    }
    println!("{compared} texts");
    assert!(compared >= 200);
}
