//! Plausible mistakes: one line says what is wrong, and what to do next.

use std::fs;

use super::support::Folder;

const NANO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/nano.gguf");
const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/images.npy");

/// The arguments, and parts of the line that they are answered by.
const MISTAKES: &[(&[&str], &[&str])] = &[
    (
        &["inspect", "im.safetensors"],
        &["cannot open", "close to it: `in.safetensors`"],
    ),
    (
        &["inspect", "nowhere/in.safetensors"],
        &["there is no folder nowhere"],
    ),
    (
        &["perplexity", NANO, "txt.txt"],
        &["cannot read", "close to it: `text.txt`"],
    ),
    (
        &["inspect", "text.txt"],
        &["not a safetensors, npy or GGUF file", "tercet train"],
    ),
    (
        &["inspect", "cut.gguf"],
        &["cut.gguf", "cut or damaged", "size"],
    ),
    (
        &["generate", "in.safetensors"],
        &["bad GGUF file", "tercet import"],
    ),
    (
        &["import", "text.txt", "-o", "out.gguf"],
        &["checkpoint of llama2.c"],
    ),
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "in.safetensors",
            "--to",
            "int8",
        ],
        &["same file", "name another output"],
    ),
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "text.txt",
            "--to",
            "int8",
        ],
        &["text.txt"],
    ),
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.safetensors",
            "--to",
            "tq2_0",
        ],
        &["name the output *.gguf"],
    ),
    (
        &["kmeans", "in.safetensors", "-k", "2"],
        &["name one as FILE:TENSOR"],
    ),
    (
        &["kmeans", "in.safetensors:wide.wieght", "-k", "2"],
        &["no tensor named `wide.wieght`", "`wide.weight`"],
    ),
    (
        &["kmeans", IMAGES, "-k", "5000"],
        &["5000 clusters", "1797 points"],
    ),
    (
        &["search", "in.safetensors:wide.weight", IMAGES, "-k", "2"],
        &["rows of", "queries of 64"],
    ),
    (
        &["generate", NANO, "--window", "500"],
        &["--window 500", "128 positions"],
    ),
    (
        &["chat", NANO, "-p", "hi"],
        &["no template", "--template names a file"],
    ),
    (
        &["train", "text.txt", "-o", "out.gguf"],
        &[
            "too short to train on",
            "give more text or a shorter context",
        ],
    ),
    (&["bench", "--op", "nothing"], &["--list"]),
    (
        &[
            "calibrate",
            IMAGES,
            "--method",
            "percentile",
            "--percent",
            "0",
        ],
        &["--percent"],
    ),
    (&["elbow", IMAGES, "--k", "5..2"], &["FIRST..LAST"]),
];

#[test]
fn every_mistake_is_answered_by_what_to_do() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    fs::write(folder.path("text.txt"), "hello\n").unwrap();
    let model = fs::read(NANO).unwrap();
    fs::write(folder.path("cut.gguf"), &model[..1000]).unwrap();
    let before = folder.files();
    for (arguments, parts) in MISTAKES {
        let run = folder.run(arguments);
        assert!(matches!(run.code, Some(1 | 2)), "{arguments:?}: {run:?}");
        for part in *parts {
            assert!(run.err.contains(part), "{arguments:?}: {part}: {}", run.err);
        }
        assert_eq!(folder.files(), before, "{arguments:?}");
    }
}
