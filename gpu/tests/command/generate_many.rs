//! `tercet generate --prompts`: every text is the one that its prompt has alone.

use std::fs;

use super::support::{Folder, fields};

/// Prompts of several lengths, with lines that are left out.
const LINES: &str = "the cat\n\nand the dog and the cat and the dog on the ship again and again and again\r\n\
                     a\nthe sea\nsing\n";
const PROMPTS: [(u64, &str); 5] = [
    (1, "the cat"),
    (
        3,
        "and the dog and the cat and the dog on the ship again and again and again",
    ),
    (4, "a"),
    (5, "the sea"),
    (6, "sing"),
];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.languages();
    fs::write(folder.path("lines"), LINES).unwrap();
    folder
}

#[test]
fn a_text_is_the_same_alone_and_among_others() {
    let folder = folder();
    for model in ["bitnet.gguf", "llama.gguf"] {
        for more in [
            &["-n", "9"][..],
            &["-n", "5", "--temp", "0.9", "--seed", "3"],
            &[
                "-n", "12", "--window", "24", "--sinks", "2", "--kv", "int16",
            ],
        ] {
            let alone: Vec<_> = PROMPTS
                .iter()
                .map(|(line, prompt)| {
                    let own = ["generate", model, "-p", prompt, "--json"];
                    (line, folder.json(&[&own[..], more].concat()))
                })
                .collect();
            for how in [
                &["--batch", "3"][..],
                &["--batch", "1", "--threads", "1"],
                &[],
            ] {
                let all = ["generate", model, "--prompts", "lines", "--json"];
                let report = folder.json(&[&all[..], more, how].concat());
                let texts = report["texts"].as_array().unwrap();
                assert_eq!(texts.len(), alone.len());
                for (text, (line, alone)) in texts.iter().zip(&alone) {
                    assert_eq!(text["line"], **line);
                    for field in ["prompt_tokens", "tokens", "text", "end", "digest"] {
                        assert_eq!(
                            text[field], alone[field],
                            "{model} {how:?} line {line} {field}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_step_has_a_row_of_each_text_and_a_finished_text_makes_room() {
    let folder = folder();
    let run = |batch: &str| {
        let all = [
            "generate",
            "llama.gguf",
            "--prompts",
            "lines",
            "-n",
            "9",
            "--json",
        ];
        folder.json(&[&all[..], &["--batch", batch]].concat())
    };
    let report = run("3");
    assert_eq!(
        fields(&report),
        [
            "batch",
            "cache",
            "engine",
            "engine_note",
            "memory",
            "rows",
            "seconds",
            "steps",
            "texts",
            "tokens_per_second",
            "window",
        ]
    );
    assert_eq!(report["batch"], 3);
    // All prompts but the last token of each text, which nobody needs.
    let texts = report["texts"].as_array().unwrap();
    let rows: u64 = texts
        .iter()
        .map(|text| {
            let drawn = text["tokens"].as_array().unwrap().len() as u64;
            text["prompt_tokens"].as_u64().unwrap() + drawn - 1
        })
        .sum();
    assert_eq!(report["rows"], rows);
    // Five texts of nine steps each, three at a time, none of which a prompt of less than 64 tokens delays.
    assert_eq!(report["steps"], 18);
    assert_eq!(run("16")["steps"], 9);
    assert_eq!(run("16")["batch"], 5);
    assert_eq!(run("1")["steps"], 45);
}

#[test]
fn texts_and_digests_come_in_the_order_of_the_lines() {
    let folder = folder();
    let all = [
        "generate",
        "llama.gguf",
        "--prompts",
        "lines",
        "-n",
        "6",
        "--temp",
        "2",
        "--batch",
        "2",
    ];
    let run = folder.run(&all);
    let report = folder.json(&[&all[..], &["--json"]].concat());
    let texts = report["texts"].as_array().unwrap();
    let expected: String = (PROMPTS.iter().zip(texts))
        .map(|((_, prompt), text)| format!("{prompt}{}\n\n", text["text"].as_str().unwrap()))
        .collect();
    assert_eq!((run.code, &run.out), (Some(0), &expected));
    assert!(run.err.starts_with("5 texts, 2 at once: "), "{}", run.err);
    let digests = folder.ok(&[&all[..], &["--digest"]].concat());
    let expected: String = (texts.iter())
        .map(|text| format!("{}\n", text["digest"].as_str().unwrap()))
        .collect();
    assert_eq!(digests, expected);
}

#[test]
fn what_cannot_be_continued_is_refused_with_its_line() {
    let folder = folder();
    fs::write(folder.path("empty"), "\n\r\n").unwrap();
    fs::write(
        folder.path("long"),
        format!("a\n\n{}\n", "the ".repeat(700)),
    )
    .unwrap();
    let fails = |lines: &str| folder.fails(&["generate", "bitnet.gguf", "--prompts", lines]);
    assert!(fails("empty").contains("empty: no line has a prompt"));
    let said = fails("long");
    assert!(
        said.contains("long: line 3 has 2801 tokens") && said.contains("1 to 640"),
        "{said}"
    );
    assert!(fails("missing").contains("missing"));
    for more in [
        &["--prompts", "lines", "-p", "a"][..],
        &["--prompts", "lines", "--lookup"],
        &["--batch", "2"],
    ] {
        let run = folder.run(&[&["generate", "bitnet.gguf"], more].concat());
        assert_eq!(run.code, Some(2), "{more:?}: {}", run.err);
    }
}
