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
    (
        &["kmeans", "named.csv", "-k", "2"],
        &[
            "`s0` is not a number",
            "(points are numbers; leave that column out: `cut ",
        ],
    ),
    (
        &["elbow", "blanks.csv", "--k", "2"],
        &["separate the fields by commas: `tr -s ' ' , < blanks.csv > numbers.csv`"],
    ),
    (
        &["search", "holes.csv", "holes.csv", "-k", "2"],
        &[
            "line 2, column 2: the field is empty",
            "leave out its line or column",
        ],
    ),
];

#[test]
fn every_mistake_is_answered_by_what_to_do() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    fs::write(folder.path("text.txt"), "hello\n").unwrap();
    let model = fs::read(NANO).unwrap();
    fs::write(folder.path("cut.gguf"), &model[..1000]).unwrap();
    fs::write(folder.path("named.csv"), "id,x\ns0,1\n").unwrap();
    fs::write(folder.path("blanks.csv"), "1.5 2 3\n4 5 6\n").unwrap();
    fs::write(folder.path("holes.csv"), "1,2\n3,\n").unwrap();
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

/// The shell's own words, run as they are printed.
#[cfg(unix)]
#[test]
fn a_column_of_text_is_left_out_as_the_error_says() {
    let folder = Folder::new();
    for (file, text) in [
        ("first.csv", "id,x,y\ns0,1,2\ns1,3,4\n"),
        ("my points.csv", "x;id;y\n1;s0;2\n3;s1;4\n"),
        ("third.tsv", "x\ty\tid\n1\t2\ts0\n3\t4\ts1\n"),
        ("blanks.csv", "1  2\n3 4\n"),
    ] {
        fs::write(folder.path(file), text).unwrap();
        let line = folder.fails(&["kmeans", file, "-k", "2"]);
        let (_, recipe) = line.rsplit_once(": `").unwrap();
        let (recipe, _) = recipe.split_once('`').unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", recipe]).current_dir(folder.path("."));
        assert!(shell.status().unwrap().success(), "{recipe}");
        let found = folder.json(&["kmeans", "numbers.csv", "-k", "2", "--json"]);
        let shape = (found["points"].as_u64(), found["dims"].as_u64());
        assert_eq!(shape, (Some(2), Some(2)), "{recipe}");
    }
}
