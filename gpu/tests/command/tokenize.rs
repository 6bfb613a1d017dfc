//! `tercet tokenize`.

use std::convert::Infallible;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use tercet_core::gguf::{Sink, Writer};

use super::support::{Folder, fields};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    type Error = Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A folder with an SPM model of a few tokens, and a byte vocabulary that names no pre-tokenizer.
fn folder() -> Folder {
    let folder = Folder::new();
    let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let mut tokens = vec!["<unk>", "<s>", "</s>"];
    tokens.extend(bytes.iter().map(String::as_str));
    tokens.extend(["▁", "h", "i", "hi", "▁hi"]);
    let mut kinds = vec![6; tokens.len()];
    kinds[..3].copy_from_slice(&[2, 3, 3]);
    kinds[259..].fill(1);
    let scores: Vec<f32> = (0..tokens.len()).map(|id| id as f32).collect();
    let mut writer = Writer::new(Bytes(Vec::new()), 4, &[]).unwrap();
    writer.entry("tokenizer.ggml.model", "llama").unwrap();
    writer.entry("tokenizer.ggml.tokens", &tokens[..]).unwrap();
    writer.entry("tokenizer.ggml.scores", &scores[..]).unwrap();
    writer
        .entry("tokenizer.ggml.token_type", &kinds[..])
        .unwrap();
    let file = writer.into_data().unwrap().finish().unwrap().0;
    fs::write(folder.path("spm.gguf"), file).unwrap();

    let mut writer = Writer::new(Bytes(Vec::new()), 3, &[]).unwrap();
    writer.entry("tokenizer.ggml.model", "gpt2").unwrap();
    writer
        .entry("tokenizer.ggml.tokens", &["a", "b", "ab", "1"][..])
        .unwrap();
    writer.entry("tokenizer.ggml.merges", &["a b"][..]).unwrap();
    let file = writer.into_data().unwrap().finish().unwrap().0;
    fs::write(folder.path("bpe.gguf"), file).unwrap();
    folder
}

#[test]
fn the_table_shows_every_token_and_its_piece() {
    let folder = folder();
    assert_eq!(
        folder.ok(&["tokenize", "spm.gguf", "hi hi\n"]),
        " id  piece  kind\n  \
           1  \"<s>\"  control\n\
         263  \" hi\"  normal\n\
         263  \" hi\"  normal\n \
          13  \"\\n\"   byte\n\
         \n4 tokens of 6 bytes\n"
    );
    let table = folder.ok(&["tokenize", "spm.gguf", "</s>", "--no-bos", "--special"]);
    assert_eq!(table.lines().nth(1), Some(" 2  \"</s>\"  control"));
}

#[test]
fn json_holds_the_documented_fields() {
    let folder = folder();
    let report = folder.json(&["tokenize", "spm.gguf", "hi", "--json"]);
    assert_eq!(fields(&report), ["bytes", "count", "tokens"]);
    let expected = serde_json::json!([
        {"id": 1, "piece": "<s>", "kind": "control"},
        {"id": 263, "piece": " hi", "kind": "normal"},
    ]);
    assert_eq!(report["tokens"], expected);
    assert_eq!((&report["bytes"], &report["count"]), (&2.into(), &2.into()));
}

#[test]
fn a_text_may_come_from_a_file_or_standard_input() {
    let folder = folder();
    fs::write(folder.path("text"), b"hi\xff").unwrap();
    let arguments = ["tokenize", "spm.gguf", "--no-bos", "--json"];
    let from_file = folder.json(&[&arguments[..], &["--file", "text"]].concat());
    let ids: Vec<u64> = from_file["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, [263, 258]);
    let mut child = folder
        .command(&[&arguments[..], &["-"]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hi\xff").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let from_input: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(from_input, from_file);
}

#[test]
fn decoding_writes_the_bytes_as_they_are() {
    let folder = folder();
    assert_eq!(
        folder.ok(&["tokenize", "spm.gguf", "--decode", "263", "263", "13"]),
        "hi hi\n"
    );
    let text = folder.ok(&["tokenize", "spm.gguf", "--decode", "1,263", "--special"]);
    assert_eq!(text, "<s> hi");
    let report = folder.json(&["tokenize", "spm.gguf", "--json", "--decode", "263,258"]);
    assert_eq!(
        report,
        serde_json::json!({"count": 2, "text": "hi\u{fffd}"})
    );
    let line = folder.fails(&["tokenize", "spm.gguf", "--decode", "264"]);
    assert!(line.contains("no token 264"), "{line}");
}

#[test]
fn a_model_that_names_no_pre_tokenizer_is_told_one() {
    let folder = folder();
    let line = folder.fails(&["tokenize", "bpe.gguf", "ab1"]);
    assert!(
        line.contains("bpe.gguf") && line.contains("tokenizer.ggml.pre"),
        "{line}"
    );
    let table = folder.ok(&["tokenize", "bpe.gguf", "ab1", "--pre", "gpt-2"]);
    assert!(
        table.contains("2  \"ab\"   normal\n 3  \"1\"    normal\n"),
        "{table}"
    );
    let run = folder.run(&["tokenize", "bpe.gguf", "ab1", "--pre", "gpt-9"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("gpt-9"), "{run:?}");
    // llama.cpp leaves out what has no token.
    folder.ok(&["tokenize", "bpe.gguf", "abz", "--pre", "gpt-2"]);
    let line = folder.fails(&["tokenize", "bpe.gguf", "abz", "--pre", "gpt-2", "--exact"]);
    assert!(line.contains("byte 122"), "{line}");
}

#[test]
fn wrong_usage_and_files_without_a_tokenizer_fail_by_their_codes() {
    let folder = folder();
    folder.model("in.safetensors");
    for arguments in [
        &["tokenize"][..],
        &["tokenize", "spm.gguf"],
        &["tokenize", "spm.gguf", "a", "--file", "b"],
        &["tokenize", "spm.gguf", "a", "--decode", "1"],
        &["tokenize", "spm.gguf", "--decode", "x"],
    ] {
        assert_eq!(folder.run(arguments).code, Some(2), "{arguments:?}");
    }
    let line = folder.fails(&["tokenize", "in.safetensors", "a"]);
    assert!(
        line.contains("in.safetensors") && line.contains("GGUF"),
        "{line}"
    );
    folder.ok(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "q8_0",
    ]);
    let line = folder.fails(&["tokenize", "out.gguf", "a"]);
    assert!(line.contains("tokenizer.ggml.model"), "{line}");
    folder.fails(&["tokenize", "spm.gguf", "--file", "none"]);
}
