//! The tokenizer of a GGUF file, owned.

use std::convert::Infallible;
use std::fs;

use tercet_core::gguf::{Reader, Sink, Writer};
use tercet_host::language::tokenizer::{Encoding, Loss, Specials, Tokenizer, TokenizerError};
use tercet_host::{Error, TensorFile};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// An SPM vocabulary of specials, bytes, a letter and two of them.
fn file(model: &str) -> Vec<u8> {
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let mut tokens = vec!["<unk>", "<s>", "</s>"];
    tokens.extend(bytes.iter().map(String::as_str));
    tokens.extend(["a", "aa"]);
    let mut kinds = vec![6; tokens.len()];
    kinds[..3].copy_from_slice(&[2, 3, 3]);
    kinds[259..].fill(1);
    let mut writer = Writer::new(Bytes(Vec::new()), 4, &[]).unwrap();
    writer.entry("tokenizer.ggml.model", model).unwrap();
    writer.entry("tokenizer.ggml.tokens", &tokens[..]).unwrap();
    writer
        .entry("tokenizer.ggml.token_type", &kinds[..])
        .unwrap();
    writer
        .entry("tokenizer.ggml.add_space_prefix", false)
        .unwrap();
    writer.into_data().unwrap().finish().unwrap().0
}

fn tokenizer() -> Tokenizer {
    let file = file("llama");
    Tokenizer::read(&Reader::new(&file).unwrap(), &file, None).unwrap()
}

const EXACT: Encoding = Encoding {
    ends: false,
    special: false,
    loss: Loss::Refused,
};

#[test]
fn a_piece_that_outgrows_the_first_scratch_is_encoded_all_the_same() {
    let tokenizer = tokenizer();
    let text = vec![b'a'; 300_001];
    let tokens = tokenizer.encode(&text, EXACT).unwrap();
    assert_eq!(
        (tokens.len(), tokens[0], tokens[150_000]),
        (150_001, 260, 259)
    );
    assert_eq!(tokenizer.decode(&tokens, Specials::Hidden).unwrap(), text);
}

#[test]
fn a_stream_gives_whole_characters() {
    let tokenizer = tokenizer();
    let tokens = tokenizer.encode("aé\u{20ac}🦀".as_bytes(), EXACT).unwrap();
    let mut stream = tokenizer.stream(Specials::Hidden);
    let pieces: Vec<String> = tokens.iter().map(|&id| stream.push(id).unwrap()).collect();
    assert_eq!(pieces, ["a", "", "é", "", "", "€", "", "", "", "🦀"]);
    assert_eq!(stream.finish(), "");
}

#[test]
fn bytes_that_can_be_part_of_no_character_do_not_hold_a_stream_up() {
    let tokenizer = tokenizer();
    let tokens = tokenizer.encode(b"\xe2\x82a\xff\xf0\x9f", EXACT).unwrap();
    let mut stream = tokenizer.stream(Specials::Hidden);
    let pieces: Vec<String> = tokens.iter().map(|&id| stream.push(id).unwrap()).collect();
    assert_eq!(pieces, ["", "", "\u{fffd}a", "\u{fffd}", "", ""]);
    let refused = stream.push(261);
    assert_eq!(
        refused,
        Err(TokenizerError::Token {
            id: 261,
            tokens: 261
        })
    );
    assert_eq!(stream.finish(), "\u{fffd}");
}

#[test]
fn a_tokenizer_outlives_its_model_and_a_refusal_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, file("llama")).unwrap();
    let tokenizer = Tokenizer::open(&TensorFile::open(&path).unwrap(), None).unwrap();
    assert_eq!(tokenizer.encode(b"aa", EXACT).unwrap(), [260]);

    fs::write(&path, file("bert")).unwrap();
    let refused = Tokenizer::open(&TensorFile::open(&path).unwrap(), None).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, Error::BadFile { .. }), "{text}");
    assert!(
        text.contains("model.gguf") && text.contains("`bert`"),
        "{text}"
    );
}
