//! `--lookup` and `--draft` of `tercet generate` and `tercet chat`: the same texts, in fewer steps.

use serde_json::Value;
use tercet_host::language::tiny;

use super::support::Folder;

const MODELS: [&str; 2] = ["bitnet.gguf", "llama.gguf"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.languages();
    // Of the same vocabularies.
    let format = tercet_host::DType::Block(tercet_core::block::Format::Q2_0);
    let (bitnet, llama) = (
        folder.path("draft-bitnet.gguf"),
        folder.path("draft-llama.gguf"),
    );
    tiny::bitnet(&bitnet, tiny::BITNET_64, 2, format, false).unwrap();
    tiny::llama(&llama, tiny::LLAMA_32, 2, false).unwrap();
    folder
}

/// What no draft changes.
fn lasting(report: &Value) -> Vec<Value> {
    let names = [
        "prompt_tokens",
        "tokens",
        "text",
        "end",
        "digest",
        "cache",
        "window",
    ];
    names.map(|name| report[name].clone()).to_vec()
}

fn counts(report: &Value) -> (u64, u64) {
    let count = |name: &str| report[name].as_u64().unwrap();
    (count("drafted_tokens"), count("accepted_tokens"))
}

#[test]
fn drafts_change_nothing_of_a_text() {
    let folder = folder();
    let mut accepted_all = 0;
    for model in MODELS {
        let other = format!("draft-{model}");
        for prompt in ["the ring the ring the ring the ", "Call me"] {
            for more in [
                &[][..],
                &["--temp", "0.8", "--seed", "3", "--repeat-penalty", "1.2"],
                &["--kv", "fp8", "--window", "20", "--sinks", "2"],
                &["--kv", "int16", "-n", "1"],
            ] {
                let words = ["generate", model, "-p", prompt, "--json"];
                let length = if more.contains(&"-n") {
                    &[][..]
                } else {
                    &["-n", "40"]
                };
                let run =
                    |drafts: &[&str]| folder.json(&[&words[..], more, length, drafts].concat());
                let expected = run(&[]);
                assert_eq!(counts(&expected), (0, 0));
                for drafts in [&["--lookup"][..], &["--draft", model], &["--draft", &other]] {
                    let found = run(drafts);
                    assert_eq!(lasting(&found), lasting(&expected), "{more:?} {drafts:?}");
                    let (drafted, accepted) = counts(&found);
                    assert!(accepted <= drafted, "{drafted} {accepted}");
                    accepted_all += accepted;
                    // The model itself is always right where it runs as it does by itself.
                    if drafts == ["--draft", model] && !more.contains(&"--kv") {
                        assert!(accepted == drafted && drafted > 20, "{drafted} {accepted}");
                    }
                }
            }
        }
    }
    assert!(accepted_all > 0);
    // People are told.
    let told = |more: &[&str]| {
        let run = folder.run(&[&["generate", MODELS[1], "-p", "the", "-n", "9"], more].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        run.err.contains(" drafted tokens accepted")
    };
    assert!(told(&["--draft", MODELS[1]]) && !told(&[]));
}

#[test]
fn drafts_change_nothing_of_a_talk() {
    let folder = folder();
    let talk = [
        "chat",
        "chat.gguf",
        "-p",
        "the ring the ring the ring",
        "-n",
        "40",
        "--json",
    ];
    let run = |more: &[&str]| folder.json(&[&talk[..], more].concat());
    let expected = run(&[]);
    for drafts in [&["--lookup"][..], &["--draft", "chat.gguf"]] {
        let found = run(drafts);
        for name in ["text", "tokens", "end", "digest", "prompt_tokens"] {
            assert_eq!(found[name], expected[name], "{drafts:?}");
        }
    }
    let (drafted, accepted) = counts(&run(&["--draft", "chat.gguf"]));
    assert!(accepted == drafted && drafted > 20, "{drafted} {accepted}");
}

#[test]
fn a_draft_of_another_vocabulary_is_refused_with_the_first_difference() {
    let folder = folder();
    let line = folder.fails(&[
        "generate",
        "llama.gguf",
        "-p",
        "a",
        "--draft",
        "bitnet.gguf",
    ]);
    assert!(
        line.starts_with("error: bitnet.gguf: it has another vocabulary: token 0 is "),
        "{line}"
    );
    let line = folder.fails(&["chat", "chat.gguf", "-p", "a", "--draft", "llama.gguf"]);
    assert!(
        line.contains("llama.gguf: ") && line.contains("token 297 is none"),
        "{line}"
    );
    let line = folder.fails(&["generate", "llama.gguf", "--draft", "text"]);
    assert!(line.starts_with("error: text: "), "{line}");
    let run = folder.run(&[
        "generate",
        "llama.gguf",
        "--lookup",
        "--draft",
        "llama.gguf",
    ]);
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn the_memory_of_a_draft_counts() {
    let folder = folder();
    let edge = |bytes: u64, drafts: &[&str]| {
        let bytes = bytes.to_string();
        let words = ["generate", "llama.gguf", "-p", "the", "-n", "9", "--json"];
        let edge = ["--profile", "edge", "--edge-memory", &bytes];
        folder.run(&[&words[..], &edge, drafts].concat())
    };
    let plain: Value = serde_json::from_str(&edge(1 << 30, &[]).out).unwrap();
    let bytes = |name: &str| plain["memory"][name].as_u64().unwrap();
    let own = bytes("cache") + bytes("steps");
    assert_eq!(edge(own, &[]).code, Some(0));
    // A lookup takes the steps of the text alone; a model its own too.
    assert_eq!(edge(own, &["--lookup"]).code, Some(0));
    let run = edge(own, &["--draft", "draft-llama.gguf"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.err.contains(" bytes of memory and has "), "{}", run.err);
}
