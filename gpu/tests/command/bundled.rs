//! The bundled language models.

use std::fs;

use super::support::Folder;

const READMES: [(&str, &str); 2] = [
    ("nano", include_str!("../../../README.md")),
    ("tiny", include_str!("../../models/README.md")),
];
/// What boards print: the text, and the digest of all logits.
const STORY: &str = include_str!("../../../firmware/snapshots/story.txt");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/nano.gguf");
/// A half MiB of flash, less what a program takes.
const MOST_BYTES: u64 = 450_000;

#[test]
fn readmes_show_what_the_bundled_models_write() {
    for (name, readme) in READMES {
        let command = format!("tercet generate gpu/models/{name}.gguf ");
        let (_, rest) = readme.split_once(&command).expect("the command");
        let (options, rest) = rest.split_once("\n```\n").expect("the block's end");
        let (_, rest) = rest.split_once("```text\n").expect("a text");
        let (shown, _) = rest.split_once("\n```").expect("the text's end");
        let model = MODEL.replace("nano", name);
        let mut arguments = vec!["generate", &model];
        arguments.extend(
            options
                .split_whitespace()
                .map(|word| word.trim_matches('"')),
        );
        let run = Folder::new().run(&arguments);
        assert_eq!(run.out.trim_end(), shown, "{}", run.err);
    }
    let bytes = fs::metadata(MODEL).unwrap().len();
    assert!(bytes <= MOST_BYTES, "{bytes}");
}

#[test]
fn boards_write_what_the_command_does() {
    let (text, digest) = STORY.trim_end().rsplit_once("\nlogits ").unwrap();
    let folder = Folder::new();
    let own = ["-p", "ROMEO:", "-n", "110", "--temp", "0.8", "--seed", "1"];
    let arguments = [&["generate", MODEL], &own[..]].concat();
    // Figures go to stderr.
    assert_eq!(folder.run(&arguments).out.trim_end(), text.trim_end());
    let found = folder.ok(&[&arguments[..], &["--digest"]].concat());
    assert_eq!(found.trim_end(), digest);
}
