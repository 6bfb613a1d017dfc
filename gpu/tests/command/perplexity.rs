//! `tercet perplexity`.

use std::fs;

use serde_json::Value;

use super::support::{Folder, fields, lasting};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.languages();
    folder
}

fn measure(folder: &Folder, model: &str, more: &[&str]) -> Value {
    folder.json(&[&["perplexity", model, "--json"], more].concat())
}

fn number(report: &Value, field: &str) -> u64 {
    report[field].as_u64().unwrap()
}

/// The tokens of `text`, with the one that begins texts or without, as decimal numbers between other things.
fn numbers(folder: &Folder, model: &str, more: &[&str]) -> String {
    let words = ["tokenize", model, "--file", "text", "--json"];
    let report = folder.json(&[&words[..], more].concat());
    let tokens = report["tokens"].as_array().unwrap();
    let ids = tokens.iter().map(|token| token["id"].to_string());
    ids.collect::<Vec<_>>().join(",\n ")
}

#[test]
fn threads_do_not_show() {
    let folder = folder();
    for model in ["bitnet.gguf", "llama.gguf"] {
        for more in [&["text"][..], &["text", "--context", "64", "--llama-cpp"]] {
            let expected = measure(&folder, model, more);
            for threads in ["1", "2"] {
                let found = measure(&folder, model, &[more, &["--threads", threads]].concat());
                assert_eq!(lasting(&found), lasting(&expected));
            }
        }
    }
}

#[test]
fn json_holds_the_documented_fields() {
    let folder = folder();
    let report = measure(&folder, "bitnet.gguf", &["text"]);
    assert_eq!(
        fields(&report),
        [
            "bits_per_byte",
            "bytes",
            "cache",
            "context",
            "count",
            "engine",
            "engine_note",
            "llama_cpp",
            "mean",
            "perplexity",
            "recorded",
            "seconds",
            "sum",
            "tokens",
        ]
    );
    assert_eq!(
        (number(&report, "context"), &report["cache"]),
        (640, &"int8".into())
    );
    assert_eq!(report["llama_cpp"], false);
    let float = |field: &str| report[field].as_f64().unwrap();
    let nats = number(&report, "sum") as f64 / (1u64 << 32) as f64;
    assert_eq!(float("mean"), nats / number(&report, "count") as f64);
    assert_eq!(float("perplexity"), float("mean").exp());
    let bits = nats / std::f64::consts::LN_2 / number(&report, "bytes") as f64;
    assert!((float("bits_per_byte") - bits).abs() < 1e-12 * bits);
    let text = folder.ok(&["perplexity", "bitnet.gguf", "text"]);
    let begin = format!("sum {} of 2^-32 nats over 700 tokens\n", report["sum"]);
    assert!(text.starts_with(&begin), "{text}");
}

#[test]
fn every_token_is_scored_once_behind_the_one_that_begins_texts() {
    let folder = folder();
    for context in ["2", "3", "63", "64", "65", "640"] {
        let report = measure(&folder, "bitnet.gguf", &["text", "--context", context]);
        let found = ["tokens", "count", "bytes"].map(|field| number(&report, field));
        assert_eq!(found, [700; 3], "windows of {context}");
    }
}

#[test]
fn without_such_a_token_the_first_of_each_window_is_not_scored() {
    let folder = folder();
    let key = b"tokenizer.ggml.add_bos_token\x07\0\0\0";
    let (old, new) = ([&key[..], &[1]].concat(), [&key[..], &[0]].concat());
    folder.edited("bitnet.gguf", "none.gguf", &old, &new);
    // 350 windows; 233 and one of a token; 11; one and 60 tokens.
    for (context, scored) in [("2", 350), ("3", 466), ("64", 689), ("640", 698)] {
        let report = measure(&folder, "none.gguf", &["text", "--context", context]);
        let found = ["count", "bytes"].map(|field| number(&report, field));
        assert_eq!(found, [scored; 2], "windows of {context}");
    }
}

#[test]
fn llama_cpp_scores_the_second_half_of_whole_windows() {
    let folder = folder();
    // 701 tokens with the one that begins texts.
    for (context, scored) in [("3", 233), ("64", 10 * 31), ("65", 10 * 32), ("640", 319)] {
        let more = ["text", "--llama-cpp", "--context", context];
        let report = measure(&folder, "bitnet.gguf", &more);
        assert_eq!(report["llama_cpp"], true);
        let found = ["tokens", "count", "bytes"].map(|field| number(&report, field));
        assert_eq!(found, [701, scored, scored], "windows of {context}");
    }
}

#[test]
fn tokens_of_a_file_are_those_of_the_text() {
    let folder = folder();
    for model in ["bitnet.gguf", "llama.gguf"] {
        for (more, ends) in [
            (&["--context", "100"][..], &["--no-bos"][..]),
            (&["--context", "100", "--llama-cpp"], &[]),
        ] {
            fs::write(folder.path("ids"), numbers(&folder, model, ends)).unwrap();
            let text = measure(&folder, model, &[more, &["text"]].concat());
            let ids = measure(&folder, model, &[more, &["--tokens", "ids"]].concat());
            assert_eq!(lasting(&ids), lasting(&text), "{model} {more:?}");
        }
    }
}

#[test]
fn what_changes_the_logits_changes_the_sum() {
    let folder = folder();
    let sum = |more: &[&str]| {
        number(
            &measure(&folder, "bitnet.gguf", &[&["text"], more].concat()),
            "sum",
        )
    };
    let plain = sum(&[]);
    assert_eq!(sum(&["--kv", "int8"]), plain);
    assert_eq!(sum(&["--window", "640"]), plain);
    for more in [
        ["--kv", "int16"],
        ["--window", "32"],
        ["--activation", "relu2"],
        ["--context", "128"],
    ] {
        assert_ne!(sum(&more), plain, "{more:?}");
    }
}

#[test]
fn a_text_that_is_not_utf_8_is_scored() {
    let folder = folder();
    fs::write(folder.path("text"), b"ab\xffcd\xc3").unwrap();
    // SPM has tokens for bytes, and a space before a text.
    let report = measure(&folder, "llama.gguf", &["text"]);
    assert_eq!(number(&report, "bytes"), 7);
    // A byte-level vocabulary has U+FFFD for them, as in llama.cpp.
    let report = measure(&folder, "bitnet.gguf", &["text"]);
    assert_eq!(number(&report, "count"), 4 + 2 * 3);
}

#[test]
fn too_short_a_text_is_refused_by_name() {
    let folder = folder();
    let refused = |more: &[&str], said: &str| {
        let line = folder.fails(&[&["perplexity", "bitnet.gguf"], more].concat());
        assert!(line.contains(said), "{line}");
    };
    fs::write(folder.path("nothing"), "").unwrap();
    refused(
        &["nothing"],
        "nothing: 0 tokens are too few for windows of 640",
    );
    refused(&["--tokens", "nothing"], "nothing: 0 tokens are too few");
    fs::write(folder.path("short"), "x".repeat(62)).unwrap();
    let halves = ["short", "--llama-cpp", "--context", "64"];
    refused(&halves, "short: 63 tokens are too few for windows of 64");
    fs::write(folder.path("short"), "x".repeat(63)).unwrap();
    assert_eq!(
        number(&measure(&folder, "bitnet.gguf", &halves), "count"),
        31
    );
    fs::write(folder.path("short"), "x").unwrap();
    assert_eq!(
        number(&measure(&folder, "bitnet.gguf", &["short"]), "count"),
        1
    );
}

#[test]
fn a_token_that_is_not_there_is_named() {
    let folder = folder();
    for word in ["259", "4294967296"] {
        fs::write(folder.path("ids"), format!("1 2 {word} 3")).unwrap();
        let line = folder.fails(&["perplexity", "bitnet.gguf", "--tokens", "ids"]);
        let told = format!("ids: there is no token {word}; the model has 259");
        assert!(line.contains(&told), "{line}");
    }
    let line = folder.fails(&["perplexity", "bitnet.gguf", "--tokens", "none"]);
    assert!(line.contains("none: cannot read"), "{line}");
    let line = folder.fails(&["perplexity", "bitnet.gguf", "none"]);
    assert!(line.contains("none: cannot read"), "{line}");
}

#[test]
fn wrong_usage_ends_in_two() {
    let folder = folder();
    for more in [
        &[][..],
        &["text", "--tokens", "text"],
        &["text", "--context", "1"],
        &["text", "--context", "641"],
        &["text", "--window", "0"],
        &["text", "--sinks", "2"],
        &["text", "--window", "641"],
        &["text", "--force"],
    ] {
        let run = folder.run(&[&["perplexity", "bitnet.gguf"], more].concat());
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(2), ""),
            "{more:?}: {run:?}"
        );
        assert!(!run.err.is_empty());
    }
}
