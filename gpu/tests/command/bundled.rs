//! The bundled language model.

use std::fs;

use super::support::Folder;

const README: &str = include_str!("../../../README.md");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/nano.gguf");
/// A half MiB of flash, less what a program takes.
const MOST_BYTES: u64 = 450_000;

#[test]
fn the_readme_shows_what_the_bundled_model_writes() {
    let command = "tercet generate gpu/models/nano.gguf ";
    let (_, rest) = README.split_once(command).expect("the command");
    let (options, rest) = rest.split_once("\n```\n").expect("the block's end");
    let (_, rest) = rest.split_once("```text\n").expect("a text");
    let (shown, _) = rest.split_once("\n```").expect("the text's end");
    let mut arguments = vec!["generate", MODEL];
    arguments.extend(
        options
            .split_whitespace()
            .map(|word| word.trim_matches('"')),
    );
    let run = Folder::new().run(&arguments);
    assert_eq!(run.out.trim_end(), shown, "{}", run.err);
    let bytes = fs::metadata(MODEL).unwrap().len();
    assert!(bytes <= MOST_BYTES, "{bytes}");
}
