//! `tercet generate`.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tercet_host::simd::Backend;

use super::support::{Folder, fields};

const MODELS: [&str; 2] = ["bitnet.gguf", "llama.gguf"];
/// The context of both.
const CONTEXT: usize = 640;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.languages();
    folder
}

/// A short text of a model, warm enough that draws matter.
fn with<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "generate", model, "-p", "Call me", "-n", "24", "--temp", "0.9",
    ];
    [&words, more].concat()
}

/// The digest of a command's logits.
fn digest(folder: &Folder, arguments: &[&str]) -> String {
    let printed = folder.ok(&[arguments, &["--digest"]].concat());
    let digits = printed.strip_suffix('\n').unwrap();
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    assert!(
        digits.len() == 16 && digits.chars().all(is_digit),
        "{printed}"
    );
    digits.to_owned()
}

/// What is the same on every machine.
fn lasting(report: &Value) -> Vec<&Value> {
    let names = [
        "prompt_tokens",
        "tokens",
        "text",
        "end",
        "digest",
        "cache",
        "window",
    ];
    names.map(|name| &report[name]).to_vec()
}

#[test]
fn neither_threads_nor_engines_show() {
    let folder = folder();
    for model in MODELS {
        let expected = folder.json(&with(model, &["--json"]));
        let own = digest(&folder, &with(model, &[]));
        assert_eq!(expected["digest"], own);
        let mut runs = vec![vec!["--threads", "1"], vec!["--threads", "2"]];
        runs.push(vec!["--backend", "auto"]);
        let sets = Backend::all().map(|backend| backend.isa().name());
        runs.extend(sets.map(|name| vec!["--backend", name]));
        runs.push(vec!["--profile", "development"]);
        for run in runs {
            let report = folder.json(&with(model, &[&run[..], &["--json"]].concat()));
            assert_eq!(lasting(&report), lasting(&expected), "{run:?}");
            if run[0] == "--backend" && run[1] != "auto" {
                assert_eq!(report["engine"], run[1]);
            }
        }
    }
}

#[test]
fn json_holds_the_documented_fields() {
    let folder = folder();
    let report = folder.json(&with("bitnet.gguf", &["--json"]));
    assert_eq!(
        fields(&report),
        [
            "accepted_tokens",
            "cache",
            "decode_seconds",
            "decode_tokens_per_second",
            "digest",
            "drafted_tokens",
            "end",
            "engine",
            "engine_note",
            "memory",
            "prompt_seconds",
            "prompt_tokens",
            "prompt_tokens_per_second",
            "text",
            "tokens",
            "window",
        ]
    );
    assert_eq!(fields(&report["memory"]), ["cache", "steps", "weights"]);
    // Seven bytes, and the token that begins texts.
    assert_eq!(report["prompt_tokens"], 8);
    assert_eq!(report["cache"], "int8");
    assert!(report["window"].is_null() && report["engine_note"].is_null());
    let llama = folder.json(&with(
        "llama.gguf",
        &["--json", "--window", "9", "--stride", "3"],
    ));
    assert_eq!(
        (&llama["cache"], &llama["window"]),
        (&"int16-8".into(), &9.into())
    );
}

#[test]
fn a_prompt_is_explained_as_products_of_many_rows_and_a_text_row_by_row() {
    let folder = folder();
    // bitnet's activations are of 8 bits: a step a weight and row.
    let report = folder.json(&with("bitnet.gguf", &["--json"]));
    let rows = report["prompt_tokens"].as_u64().unwrap();
    assert!(rows > 1);
    let told = |tokens: &str| {
        let words = [
            "generate",
            "bitnet.gguf",
            "-p",
            "Call me",
            "-n",
            tokens,
            "--explain",
        ];
        let run = folder.run(&words);
        assert_eq!(run.code, Some(0), "{run:?}");
        run.err
    };
    // Elements and steps behind some words at the beginning of a line.
    let amounts = |told: &str, head: &str| {
        let line = told
            .lines()
            .find_map(|line| line.strip_prefix(head))
            .unwrap();
        let mut parts = line.split(", ").map(|part| part.split(' ').next().unwrap());
        let (elements, steps) = (parts.next().unwrap(), parts.nth(1).unwrap());
        [elements, steps].map(|number| number.parse::<u64>().unwrap())
    };
    let both = told("24");
    let [elements, steps] = amounts(&both, "first matmul: ");
    assert_eq!(steps, rows * elements);
    // The head is the text's.
    let [all, steps] = amounts(&both, "then matvec: ");
    assert!(all > elements && steps == all, "{both}");
    assert!(both.contains(" items, 23 tokens; "), "{both}");
    assert_eq!(report["tokens"].as_array().map(Vec::len), Some(24));
    // The first token is the prompt's.
    let one = told("1");
    assert_eq!(amounts(&one, "matmul: "), [elements, rows * elements]);
    assert!(!one.contains("then "), "{one}");
}

#[test]
fn a_text_is_the_prompt_and_what_json_holds() {
    let folder = folder();
    for model in MODELS {
        // Some texts of bytes end within a character.
        for seed in 0..4 {
            let seed = seed.to_string();
            let run = folder.run(&with(model, &["--seed", &seed]));
            assert_eq!(run.code, Some(0), "{run:?}");
            let report = folder.json(&with(model, &["--seed", &seed, "--json"]));
            let text = report["text"].as_str().unwrap();
            assert_eq!(run.out, format!("Call me{text}\n"));
            let digest = report["digest"].as_str().unwrap();
            assert!(
                run.err.ends_with(&format!(", digest of logits {digest}\n")),
                "{}",
                run.err
            );
            assert!(run.err.starts_with("prompt: "), "{}", run.err);
        }
    }
}

#[test]
fn a_window_that_reaches_all_changes_nothing() {
    let folder = folder();
    for model in MODELS {
        let all = digest(&folder, &with(model, &[]));
        let of = |more: &[&str]| digest(&folder, &with(model, more));
        assert_eq!(of(&["--window", "200"]), all);
        assert_eq!(of(&["--window", "200", "--sinks", "4"]), all);
        assert_eq!(of(&["--window", "1", "--stride", "1"]), all);
        let short = of(&["--window", "8"]);
        let sinks = of(&["--window", "8", "--sinks", "2"]);
        let stride = of(&["--window", "8", "--stride", "5"]);
        let mut found = [all, short, sinks, stride];
        found.sort_unstable();
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "{found:?}");
    }
}

#[test]
fn a_window_takes_any_length_in_the_memory_of_a_short_one() {
    let folder = folder();
    let long = "a".repeat(CONTEXT + 60);
    let told = format!("{} tokens, the model's context {CONTEXT}; ", CONTEXT + 61);
    let model = ["generate", "bitnet.gguf", "-p", &long, "-n", "3"];
    let line = folder.fails(&model);
    assert!(line.contains(&told) && line.contains("--window"), "{line}");
    let stride = folder.fails(&[&model[..], &["--window", "9", "--stride", "3"]].concat());
    assert!(stride.contains(&told), "{stride}");
    let window = ["--window", "64", "--sinks", "4", "--json"];
    let report = folder.json(&[&model[..], &window].concat());
    assert_eq!(
        (&report["end"], &report["window"]),
        (&"length".into(), &64.into())
    );
    let short = folder.json(&with("bitnet.gguf", &window));
    assert_eq!(report["memory"], short["memory"]);
}

/// `tokens` asked for behind a prompt of so many; how many came and why no more did.
fn ended(folder: &Folder, prompt: usize, tokens: &str) -> (usize, String) {
    let prompt = "a".repeat(prompt - 1);
    let report = folder.json(&[
        "generate",
        "bitnet.gguf",
        "-p",
        &prompt,
        "-n",
        tokens,
        "--json",
    ]);
    let end = report["end"].as_str().unwrap().to_owned();
    (report["tokens"].as_array().unwrap().len(), end)
}

#[test]
fn a_text_ends_where_it_was_told_to_or_the_context_does() {
    let folder = folder();
    // The greedy text of this model has no token that ends it.
    assert_eq!(ended(&folder, 20, "5"), (5, "length".into()));
    assert_eq!(ended(&folder, 20, "0"), (0, "length".into()));
    assert_eq!(ended(&folder, CONTEXT, "9"), (1, "context".into()));
    assert_eq!(ended(&folder, CONTEXT, "1"), (1, "length".into()));
    assert_eq!(ended(&folder, CONTEXT - 3, "9"), (4, "context".into()));
    assert_eq!(ended(&folder, CONTEXT, "0"), (0, "length".into()));
}

#[test]
fn a_token_that_ends_texts_ends_them_and_is_not_shown() {
    let folder = folder();
    // One token of 259 is the end; nearly all are as likely at such a temperature.
    let report = (0..8).find_map(|seed| {
        let seed = seed.to_string();
        let report = folder.json(&[
            "generate",
            "bitnet.gguf",
            "-n",
            "600",
            "--temp",
            "90",
            "--seed",
            &seed,
            "--json",
        ]);
        (report["end"] == "token").then_some(report)
    });
    let report = report.expect("a text that ends");
    let tokens = report["tokens"].as_array().unwrap();
    assert_eq!(tokens.last(), Some(&257.into()));
    assert_eq!(tokens.iter().filter(|token| **token == 257).count(), 1);
    assert!(!report["text"].as_str().unwrap().contains("eos"));
}

#[test]
fn options_of_draws_do_what_they_say() {
    let folder = folder();
    let tokens = |more: &[&str]| {
        let words = ["generate", "llama.gguf", "-p", "the", "-n", "30", "--json"];
        folder.json(&[&words[..], more].concat())["tokens"].clone()
    };
    let greedy = tokens(&[]);
    assert_eq!(tokens(&["--seed", "9"]), greedy, "no draw, no seed");
    let warm = tokens(&["--temp", "1.5"]);
    assert_ne!(warm, greedy);
    assert_eq!(tokens(&["--temp", "1.5", "--seed", "0"]), warm);
    assert_ne!(tokens(&["--temp", "1.5", "--seed", "1"]), warm);
    for one in [["--top-k", "1"], ["--top-p", "0"], ["--min-p", "1"]] {
        assert_eq!(
            tokens(&[&["--temp", "1.5"], &one[..]].concat()),
            greedy,
            "{one:?}"
        );
    }
    let penalized = tokens(&["--repeat-penalty", "1000"]);
    assert_ne!(penalized, greedy);
    assert_eq!(
        tokens(&["--repeat-penalty", "1000", "--repeat-last", "0"]),
        greedy
    );
    let mut distinct: Vec<u64> = penalized
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_u64().unwrap())
        .collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 30, "none comes twice");
}

#[test]
fn what_a_file_says_can_be_said_again_or_otherwise() {
    let folder = folder();
    for (model, own) in [("bitnet.gguf", "int8"), ("llama.gguf", "int16-8")] {
        let plain = digest(&folder, &with(model, &[]));
        for kind in ["int8", "int16-8", "int16", "fp8"] {
            let named = digest(&folder, &with(model, &["--kv", kind]));
            assert_eq!(named == plain, kind == own, "{model} {kind}");
        }
        let gate = |name| digest(&folder, &with(model, &["--activation", name]));
        assert_eq!(
            (gate("silu") == plain, gate("relu2") == plain),
            (true, false)
        );
    }
}

#[test]
fn control_tokens_in_a_prompt_are_text_unless_they_are_asked_for() {
    let folder = folder();
    let count = |more: &[&str]| {
        let words = [
            "generate",
            "bitnet.gguf",
            "-p",
            "<|eos|>a",
            "-n",
            "1",
            "--json",
        ];
        folder.json(&[&words[..], more].concat())["prompt_tokens"].clone()
    };
    assert_eq!((count(&[]), count(&["--special"])), (9.into(), 3.into()));
}

#[test]
fn edge_takes_the_memory_that_is_reported_and_no_more() {
    let folder = folder();
    let edge = |bytes: usize| {
        let bytes = bytes.to_string();
        let more = ["--profile", "edge", "--edge-memory", &bytes, "--json"];
        folder.run(&with("bitnet.gguf", &more))
    };
    let run = edge(1 << 30);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let plain = folder.json(&with("bitnet.gguf", &["--json"]));
    assert_eq!(lasting(&report), lasting(&plain));
    let bytes = |name: &str| report["memory"][name].as_u64().unwrap() as usize;
    let all = bytes("cache") + bytes("steps");
    let again = edge(all);
    assert_eq!((again.code, again.err.as_str()), (Some(0), ""));
    let less = edge(all - 1);
    assert_eq!((less.code, less.out.as_str()), (Some(1), ""));
    let told = format!("needs {all} bytes of memory and has {}", all - 1);
    assert!(less.err.contains(&told), "{}", less.err);
    // A text that streams has not begun either.
    let bytes = (all - 1).to_string();
    let more = ["--profile", "edge", "--edge-memory", &bytes];
    assert_eq!(folder.fails(&with("bitnet.gguf", &more)), less.err);
}

#[test]
fn edge_takes_a_prompt_in_row_by_row_with_the_same_text() {
    let folder = folder();
    // Of more rows than a step has elsewhere.
    let prompt = "the ".repeat(40);
    for model in MODELS {
        let words = ["generate", model, "-p", &prompt, "-n", "9", "--json"];
        let plain = folder.json(&words);
        let edge = ["--profile", "edge", "--edge-memory", "1000000"];
        let report = folder.json(&[&words[..], &edge].concat());
        assert_eq!(lasting(&report), lasting(&plain));
        let bytes = |report: &Value, part: &str| report["memory"][part].as_u64().unwrap();
        assert_eq!(bytes(&report, "cache"), bytes(&plain, "cache"));
        // All but the scores and a row's logits is by the row.
        let (few, many) = (bytes(&report, "steps"), bytes(&plain, "steps"));
        assert!(few * 16 < many, "{few} {many}");
    }
}

/// Bytes that are not UTF-8, as an argument.
#[cfg(unix)]
fn argument(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

#[cfg(unix)]
#[test]
fn a_prompt_that_is_not_utf_8_is_taken_as_tokenize_takes_it() {
    let folder = folder();
    const TEXT: &[u8] = b"a\xffb\xe4\xb8";
    for model in MODELS {
        let run = |words: &[&str], text: &[u8]| {
            let output = folder.command(words).arg(argument(text)).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            output.stdout
        };
        let json = |words: &[&str], text: &[u8]| -> Value {
            serde_json::from_slice(&run(words, text)).unwrap()
        };
        let generate = ["generate", model, "-n", "3", "--json", "-p"];
        let report = json(&generate, TEXT);
        let tokens = json(&["tokenize", model, "--json"], TEXT);
        assert_eq!(report["prompt_tokens"], tokens["count"]);
        // As of a file.
        fs::write(folder.path("bytes"), TEXT).unwrap();
        let of_file = folder.json(&["tokenize", model, "--json", "--file", "bytes"]);
        assert_eq!(of_file, tokens);
        // The text begins with the very bytes.
        let text = run(&["generate", model, "-n", "3", "-p"], TEXT);
        assert_eq!(text.strip_suffix(b"\n").unwrap(), {
            let more = report["text"].as_str().unwrap();
            [TEXT, more.as_bytes()].concat()
        });
        // In a byte-level vocabulary each is U+FFFD, as in llama.cpp.
        let replaced = "a\u{fffd}b\u{fffd}\u{fffd}".as_bytes();
        let same = json(&generate, replaced)["digest"] == report["digest"];
        assert_eq!(same, model == "bitnet.gguf");
    }
}

#[test]
fn a_file_that_is_cut_short_is_refused_by_every_command() {
    let folder = folder();
    for model in MODELS {
        let bytes = fs::read(folder.path(model)).unwrap();
        let len = bytes.len();
        // Less than the last tensor, and what may be padding behind it.
        for len in [0, 3, 20, 100, 1000, 6000, len / 2, len - 100, len - 33] {
            fs::write(folder.path("short.gguf"), &bytes[..len]).unwrap();
            for arguments in [
                with("short.gguf", &[]),
                vec!["perplexity", "short.gguf", "text"],
                vec!["tokenize", "short.gguf", "a"],
            ] {
                let line = folder.fails(&arguments);
                assert!(line.starts_with("error: short.gguf: "), "{len}: {line}");
            }
        }
    }
}

/// A model whose cache of all its positions takes some 4.6 GB.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_does_not_suffice_is_told_before_a_word() {
    use tercet_core::block::Format;
    use tercet_host::DType;
    use tercet_host::language::{Parameters, tiny};

    let folder = folder();
    let parameters = Parameters {
        context_length: 1 << 20,
        block_count: 16,
        ..tiny::BITNET
    };
    let format = DType::Block(Format::Tq2_0);
    tiny::bitnet(&folder.path("long.gguf"), parameters, 1, format, false).unwrap();
    // Two gigabytes of addresses, as a system administrator would limit them.
    let run = |arguments: &[&str]| {
        let words = arguments.join(" ");
        let script = format!("ulimit -v 2000000 && exec \"$0\" {words}");
        let command = folder.command(&[]);
        let program = command.get_program().to_owned();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).arg(program);
        shell.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        super::support::finish(&mut shell)
    };
    let fewer = run(&["generate", "long.gguf", "-p", "a", "-n", "4", "--json"]);
    assert_eq!(fewer.code, Some(0), "{fewer:?}");
    let fits: Value = serde_json::from_str(&fewer.out).unwrap();
    assert_eq!(fits["prompt_tokens"], 2);
    fs::write(folder.path("text"), "a").unwrap();
    for arguments in [
        &["generate", "long.gguf", "-p", "a", "-n", "1000000"][..],
        &["perplexity", "long.gguf", "text"],
    ] {
        let run = run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{run:?}");
        assert_eq!(run.err.lines().count(), 1, "{run:?}");
        let parts = [
            "error: long.gguf: a run needs ",
            " of cache and ",
            " of steps, but only ",
        ];
        let options = [" are left", "-n", "--context", "--window", "--kv"];
        for part in parts.into_iter().chain(options) {
            assert!(run.err.contains(part), "{part}: {}", run.err);
        }
    }
    let window = [
        "generate",
        "long.gguf",
        "-p",
        "a",
        "-n",
        "4",
        "--window",
        "64",
    ];
    assert_eq!(run(&window).code, Some(0));
}

#[test]
fn wrong_usage_ends_in_two_and_prints_no_prompt() {
    let folder = folder();
    for (more, named) in [
        (&["--temp", "-1"][..], "--temp"),
        (&["--temp", "inf"], "--temp"),
        (&["--temp", "nan"], "--temp"),
        (&["--temp", "warm"], "--temp"),
        (&["--top-p", "2"], "--top-p"),
        (&["--top-p", "-0.5"], "--top-p"),
        (&["--min-p", "1.5"], "--min-p"),
        (&["--repeat-penalty", "0"], "--repeat-penalty"),
        (&["--top-k", "-1"], "-1"),
        (&["--window", "0"], "--window"),
        (&["--sinks", "2"], "--window"),
        (&["--stride", "2"], "--window"),
        (&["--window", "8", "--stride", "0"], "--stride"),
        (&["--window", "641"], "641"),
        (&["--window", "640", "--sinks", "1"], "640"),
        (&["--window", "8", "--sinks", "4294967295"], "4294967295"),
        (&["--kv", "int4"], "int4"),
        (&["--activation", "gelu"], "gelu"),
        (&["--digest", "--json"], "--json"),
        (&["--backend", "sse9"], "sse9"),
    ] {
        let run = folder.run(&with("bitnet.gguf", more));
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(2), ""),
            "{more:?}: {run:?}"
        );
        assert!(run.err.contains(named), "{more:?}: {}", run.err);
    }
    assert_eq!(folder.run(&["generate"]).code, Some(2));
}

#[test]
fn a_text_of_no_tokens_wants_a_prompt() {
    let folder = folder();
    let key = b"tokenizer.ggml.add_bos_token\x07\0\0\0";
    folder.edited(
        "bitnet.gguf",
        "none.gguf",
        &[&key[..], &[1]].concat(),
        &[&key[..], &[0]].concat(),
    );
    let run = folder.run(&["generate", "none.gguf", "-n", "1"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("give a prompt"), "{}", run.err);
    folder.json(&["generate", "none.gguf", "-n", "1", "-p", "a", "--json"]);
    folder.json(&["generate", "bitnet.gguf", "-n", "1", "--json"]);
}

#[test]
fn what_is_no_model_is_refused_with_its_file_and_key_or_tensor() {
    let folder = folder();
    let refused = |file: &str, said: &str| {
        for arguments in [with(file, &[]), vec!["perplexity", file, "text"]] {
            let line = folder.fails(&arguments);
            assert!(line.starts_with(&format!("error: {file}: ")), "{line}");
            assert!(line.contains(said), "{line}");
        }
    };
    refused("nowhere.gguf", "cannot open");
    fs::write(folder.path("notes.gguf"), "no model").unwrap();
    refused("notes.gguf", "GGUF");
    folder.model("in.safetensors");
    refused("in.safetensors", "GGUF");
    folder.ok(&[
        "quantize",
        "in.safetensors",
        "-o",
        "weights.gguf",
        "--to",
        "q8_0",
    ]);
    refused("weights.gguf", "general.architecture");
    let bytes = fs::read(folder.path("bitnet.gguf")).unwrap();
    fs::write(folder.path("short.gguf"), &bytes[..bytes.len() - 1]).unwrap();
    refused("short.gguf", "output_norm.weight");
    fs::write(folder.path("begun.gguf"), &bytes[..200]).unwrap();
    refused("begun.gguf", "GGUF");
    let edit = |to: &str, old: &[u8], new: &[u8]| folder.edited("bitnet.gguf", to, old, new);
    edit("other.gguf", b"bitnet", b"bitten");
    refused("other.gguf", "general.architecture");
    edit(
        "key.gguf",
        b"bitnet.context_length",
        b"bitnet.context_lengtx",
    );
    refused("key.gguf", "context_length");
    let count = b"bitnet.block_count\x04\0\0\0";
    edit(
        "layers.gguf",
        &[&count[..], &[2]].concat(),
        &[&count[..], &[3]].concat(),
    );
    refused("layers.gguf", "blk.2.");
    edit(
        "tensor.gguf",
        b"blk.1.ffn_up.weight",
        b"blk.1.ffn_ux.weight",
    );
    refused("tensor.gguf", "blk.1.ffn_ux.weight");
    edit(
        "words.gguf",
        b"tokenizer.ggml.model",
        b"tokenizer.ggml.modal",
    );
    refused("words.gguf", "tokenizer.ggml.model");
}

#[test]
fn what_is_not_finite_is_told_with_its_place() {
    let folder = folder();
    let mut bytes = fs::read(folder.path("bitnet.gguf")).unwrap();
    // The last gain of the norm before the head.
    let gain = bytes.len() - 4;
    bytes[gain..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(folder.path("nan.gguf"), bytes).unwrap();
    let line = folder.fails(&with("nan.gguf", &["--digest"]));
    let told = "nan.gguf: position 7 of sequence 0, layer 2: not finite: the norm before the head";
    assert!(line.contains(told), "{line}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let folder = folder();
    let mut child = folder
        .command(&with("bitnet.gguf", &[]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
