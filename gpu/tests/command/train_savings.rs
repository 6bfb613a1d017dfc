//! `tercet train` with less: a lean state, part of the text, fewer weights that are not zero.

use std::fs;

use serde_json::{Value, json};

use super::support::Folder;
use super::train::{arguments, bytes, folder, lines};

/// The bytes of a run's file.
fn file(own: &[&str]) -> Vec<u8> {
    let folder = folder();
    folder.ok(&arguments("model.gguf", own));
    bytes(&folder, "model.gguf")
}

/// Options that are refused before any work.
fn refused_use(folder: &Folder, own: &[&str]) {
    let run = folder.run(&arguments("no.gguf", own));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains(own[0]), "{run:?}");
}

#[test]
fn a_lean_run_takes_a_third_of_the_state_and_goes_on_as_it_was() {
    let folder = folder();
    let plan = |own: &[&str]| {
        let own = [&["--plan", "--json"], own].concat();
        folder.json(&[&["train", "text.txt", "--context", "16"], &own[..]].concat())
    };
    let (full, lean) = (plan(&[]), plan(&["--lean"]));
    let state =
        |plan: &Value| plan["weights"].as_f64().unwrap() + plan["moments"].as_f64().unwrap();
    let weights = full["weights"].as_f64().unwrap() / 4.0;
    assert_eq!(state(&full) / weights, 12.0);
    assert!(state(&lean) / weights < 4.2, "{lean}");
    let text = folder.ok(&["train", "text.txt", "--context", "16", "--plan"]);
    assert!(text.contains("with --lean"), "{text}");
    let expected = file(&["--lean"]);
    assert!(expected != file(&[]));
    folder.ok(&arguments(
        "part.gguf",
        &["--lean", "--checkpoint", "run", "--stop-after", "1"],
    ));
    let resumed = ["--checkpoint", "run", "--resume", "--threads", "1"];
    let other = folder.fails(&arguments("rest.gguf", &resumed));
    assert!(other.contains("its lean is `yes`, not `none`"), "{other}");
    let lean = [&resumed[..], &["--lean", "--accumulate", "3"]].concat();
    folder.ok(&arguments("rest.gguf", &lean));
    assert!(bytes(&folder, "rest.gguf") == expected);
}

#[test]
fn a_share_of_the_text_is_trained_on_at_random_or_by_clusters() {
    let folder = folder();
    // Two kinds of text: little of the first.
    let rare = "0123456789 ".repeat(16);
    let text = [&rare, &"of the sea and the sail. ".repeat(60)[..]].concat();
    fs::write(folder.path("text.txt"), &text).unwrap();
    let own = ["--vocabulary", "259", "--keep", "0.3"];
    let random = lines(&folder, &arguments("random.gguf", &own));
    let kept = &random[0]["kept"];
    let windows = kept["windows"].as_u64().unwrap();
    assert_eq!(kept["kept"], windows * 3 / 10);
    assert_eq!(kept["clusters"], json!([]));
    let clusters = [&own[..], &["--clusters", "2"]].concat();
    let even = lines(&folder, &arguments("even.gguf", &clusters));
    let own_kept = even[0]["kept"]["clusters"].as_array().unwrap();
    let of = |index: usize, name: &str| own_kept[index][name].as_u64().unwrap();
    assert_eq!(of(0, "windows") + of(1, "windows"), windows);
    // The pieces of the first text, and the one that has both.
    assert!((10..=12).contains(&of(0, "windows")), "{own_kept:?}");
    assert!(of(1, "kept") - of(0, "kept") <= 1 || of(0, "kept") == of(0, "windows"));
    assert_ne!(bytes(&folder, "even.gguf"), bytes(&folder, "random.gguf"));
    let text = folder.ok(&arguments(
        "again.gguf",
        &[&clusters[..], &["--threads", "1"]].concat(),
    ));
    assert!(text.contains(" pieces of the text: "), "{text}");
    assert!(text.contains(" from each of 2 clusters of "), "{text}");
    assert_eq!(bytes(&folder, "again.gguf"), bytes(&folder, "even.gguf"));
    // What cannot be is refused, and nothing is written.
    let impossible = |own: &[&str]| {
        let run = folder.run(&arguments("no.gguf", own));
        assert_eq!(run.code, Some(2), "{run:?}");
        run.err
    };
    let many = impossible(&[&own[..], &["--clusters", "5000"]].concat());
    assert!(
        many.contains("5000 clusters cannot be made of 98 windows"),
        "{many}"
    );
    let none = impossible(&["--keep", "0.000001"]);
    assert!(none.contains("less than one"), "{none}");
    assert!(!folder.path("no.gguf").exists());
    refused_use(&folder, &["--clusters", "2"]);
    refused_use(&folder, &["--keep", "1.5"]);
}

#[test]
fn a_share_of_zeros_is_in_the_file() {
    let folder = folder();
    folder.ok(&arguments("model.gguf", &["--zeros", "0.75"]));
    let seen = folder.json(&["inspect", "model.gguf", "--json"]);
    let mut matrices = 0;
    for tensor in seen["tensors"].as_array().unwrap() {
        if tensor["dtype"] == "tq2_0" {
            let shape = tensor["shape"].as_array().unwrap();
            let count: u64 = shape.iter().map(|side| side.as_u64().unwrap()).product();
            let zeros = tensor["values"]["zeros"].as_u64().unwrap();
            assert!(
                zeros >= count * 3 / 4 && zeros < count * 3 / 4 + 9,
                "{tensor}"
            );
            matrices += 1;
        }
    }
    assert_eq!(matrices, 14);
    refused_use(&folder, &["--zeros", "1"]);
}

#[test]
fn channels_are_removed_by_their_recorded_importance() {
    let folder = folder();
    folder.ok(&arguments("model.gguf", &[]));
    folder.ok(&[
        "perplexity",
        "model.gguf",
        "text.txt",
        "--record",
        "inputs.gguf",
    ]);
    let own = [
        "--from",
        "model.gguf",
        "--importance",
        "inputs.gguf",
        "--channels",
        "256",
    ];
    let small = lines(&folder, &arguments("small.gguf", &own));
    let parameters = &small[0]["parameters"];
    assert_eq!(parameters["feed_forward_length"], 256);
    let pruned = &small[0]["pruned"];
    assert_eq!(
        (&pruned["channels"], &pruned["kept"]),
        (&json!(512), &json!(256))
    );
    let share = pruned["importance"].as_f64().unwrap();
    assert!(share > 0.5 && share < 1.0, "{share}");
    let [small, model] = ["small.gguf", "model.gguf"].map(|name| bytes(&folder, name).len());
    // Three matrices of 256 x 256 less in each of two layers.
    assert!(
        model - small > 6 * 256 * 256 / 4 && small > model / 2,
        "{small} {model}"
    );
    let text = folder.ok(&arguments("again.gguf", &own));
    assert!(
        text.contains("keeps 256 of 512 channels per layer, with "),
        "{text}"
    );
    assert_eq!(bytes(&folder, "again.gguf"), bytes(&folder, "small.gguf"));
    let run = folder.run(&arguments("no.gguf", &[&own[..5], &["512"]].concat()));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("has 512 channels in a layer"), "{run:?}");
    refused_use(&folder, &["--channels", "256"]);
    // What is left learns from the whole model, whose logits are kept for a second run.
    let teacher = ["--teacher", "model.gguf", "--teacher-cache", "logits.bin"];
    let taught = |out: &str, own: &[&str]| {
        let lines = lines(&folder, &arguments(out, own));
        lines[0]["teacher_cache"]["sequences"].as_u64().unwrap()
    };
    let own = [&own[..], &teacher].concat();
    assert_eq!(taught("taught.gguf", &own), 0);
    let other = [&own[..], &["--temperature", "1", "--threads", "1"]].concat();
    assert!(taught("other.gguf", &other) > 0);
    let asked = [&own[..4], &["--channels", "256"], &teacher[..2]].concat();
    folder.ok(&arguments("asked.gguf", &asked));
    assert!(bytes(&folder, "asked.gguf") == bytes(&folder, "taught.gguf"));
    assert!(bytes(&folder, "asked.gguf") != bytes(&folder, "small.gguf"));
    let text = folder.ok(&arguments("told.gguf", &own));
    assert!(
        text.contains("; model.gguf teaches, its logits of "),
        "{text}"
    );
    refused_use(&folder, &["--teacher-cache", "logits.bin"]);
}

#[test]
fn heads_are_removed_by_their_recorded_importance() {
    let folder = folder();
    folder.ok(&arguments("model.gguf", &[]));
    let record = ["perplexity", "model.gguf", "text.txt", "--record"];
    folder.ok(&[&record[..], &["inputs.gguf"]].concat());
    let source = ["--from", "model.gguf", "--importance", "inputs.gguf"];
    let own = [&source[..], &["--heads", "1"]].concat();
    let few = lines(&folder, &arguments("few.gguf", &own));
    let kept = &few[0]["kept_heads"];
    assert_eq!(
        (&kept["heads"], &kept["kept"], &few[0]["pruned"]),
        (&json!(2), &json!(1), &json!(null))
    );
    let share = kept["importance"].as_f64().unwrap();
    assert!(share > 0.5 && share < 1.0, "{share}");
    // The same shapes, and half of the weights of attention are 0 beside the others.
    let zeros = |file: &str, part: &str| {
        let seen = folder.json(&["inspect", file, "--json"]);
        let tensors = seen["tensors"].as_array().unwrap().iter();
        let own = tensors.filter(|tensor| tensor["name"].as_str().unwrap().contains(part));
        let counts = own.map(|tensor| {
            let shape = tensor["shape"].as_array().unwrap().iter();
            let values: u64 = shape.map(|side| side.as_u64().unwrap()).product();
            (values, tensor["values"]["zeros"].as_u64().unwrap())
        });
        counts.collect::<Vec<(u64, u64)>>()
    };
    for part in ["attn_q", "attn_k", "attn_v", "attn_output"] {
        let (whole, few) = (zeros("model.gguf", part), zeros("few.gguf", part));
        for ((values, before), (same, after)) in whole.into_iter().zip(few) {
            assert_eq!(values, same);
            assert!(
                after >= values / 2 && after > before,
                "{part}: {before} {after}"
            );
        }
    }
    let text = folder.ok(&arguments("again.gguf", &own));
    assert!(
        text.contains("keeps 1 of 2 key heads per layer, with "),
        "{text}"
    );
    assert!(bytes(&folder, "again.gguf") == bytes(&folder, "few.gguf"));
    // Channels too, by the same measurements.
    let both = [&own[..], &["--channels", "256"]].concat();
    let both = lines(&folder, &arguments("both.gguf", &both));
    assert_eq!(both[0]["pruned"]["kept"], 256);
    assert_eq!(both[0]["kept_heads"]["kept"], 1);
    // What cannot be is refused, and nothing is written.
    let run = folder.run(&arguments(
        "no.gguf",
        &[&source[..], &["--heads", "2"]].concat(),
    ));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.err.contains("has 2 key heads in a layer"), "{run:?}");
    refused_use(&folder, &["--heads", "1"]);
    let adapters = [&own[..], &["--adapters", "2"]].concat();
    let run = folder.run(&arguments("no.gguf", &adapters));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(!folder.path("no.gguf").exists());
}
