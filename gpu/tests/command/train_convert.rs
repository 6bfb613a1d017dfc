//! `tercet train --from` a llama: it becomes a bitnet, and the report says what that costs.

use std::path::Path;

use serde_json::Value;
use tercet_core::number::Random;
use tercet_host::DType;
use tercet_host::file::output::Output;
use tercet_host::language::{
    Description, Extras, LanguageFile, Parameters, Role, Slot, Vocabulary, Writer, specs, tiny,
};

use super::support::Folder;
use super::train::{arguments, bytes, folder, lines};

/// Writes a llama of random floats with these tokens.
fn write(path: &Path, vocabulary: Vocabulary) {
    let parameters = Parameters {
        context_length: 16,
        embedding_length: 256,
        feed_forward_length: 256,
        head_length: 64,
        vocab_size: vocabulary.tokens.len() as u32,
        ..tiny::LLAMA
    };
    let slots = parameters.tensors(Extras::default());
    let types: Vec<(&Slot, DType)> = slots
        .iter()
        .map(|slot| match slot.role.is_matrix() {
            true => (slot, DType::F16),
            false => (slot, DType::F32),
        })
        .collect();
    let specs = specs(path, &types).unwrap();
    let description = Description {
        parameters,
        vocabulary,
        extras: Vec::new(),
        dtype: DType::F16,
    };
    let output = Output::create(path, [], false).unwrap();
    let mut writer = Writer::new(output, &description, &specs).unwrap();
    let mut random = Random::new(1);
    for slot in &slots {
        let each = |_| match slot.role {
            Role::Norm => 1.0,
            _ => random.normal() / 16.0,
        };
        let values: Vec<f32> = (0..slot.values()).map(each).collect();
        writer.values(&values).unwrap();
    }
    writer.finish().unwrap();
}

/// A folder with a text, a llama and its recorded inputs.
fn with_llama() -> Folder {
    let folder = folder();
    write(&folder.path("float.gguf"), Vocabulary::bytes());
    record(&folder);
    folder
}

fn record(folder: &Folder) {
    let record = ["perplexity", "float.gguf", "text.txt", "--record"];
    folder.ok(&[&record[..], &["inputs.gguf"]].concat());
}

/// The names of an object's fields, in order.
fn names(line: &Value) -> Vec<&str> {
    let fields = line.as_object().unwrap().keys();
    fields.map(String::as_str).collect()
}

const CONVERT: [&str; 4] = ["--from", "float.gguf", "--importance", "inputs.gguf"];

#[test]
fn a_llama_is_reported_as_it_was_then_rounded_then_trained() {
    let folder = with_llama();
    let own = [&CONVERT[..], &["--report", "run"]].concat();
    let told = lines(&folder, &arguments("model.gguf", &own));
    let firsts: Vec<&str> = told.iter().map(|line| names(line)[0]).collect();
    let expected = [
        "begun",
        "evaluated",
        "step",
        "step",
        "evaluated",
        "step",
        "evaluated",
        "done",
    ];
    assert_eq!(firsts, expected);
    assert_eq!(told[0]["parameters"]["architecture"], "bitnet");
    let converted = &told[0]["converted"];
    let figures = [
        "architecture",
        "sum",
        "count",
        "bytes",
        "mean",
        "bits_per_byte",
    ];
    assert_eq!(names(converted), figures);
    assert_eq!(converted["architecture"], "llama");
    // Each figure is that of the model on its own.
    let same = |line: &Value, model: &str| {
        let scored = folder.json(&["perplexity", model, "run/held-out.txt", "--json"]);
        for field in &figures[1..] {
            assert_eq!(line[field], scored[field], "{model} {field}");
        }
    };
    same(converted, "float.gguf");
    same(&told[6], "model.gguf");
    // Steps that change no weight.
    let still = [&CONVERT[..], &["--rate", "1e-30"]].concat();
    folder.ok(&arguments("rounded.gguf", &still));
    same(&told[1], "rounded.gguf");
    assert_eq!(told[1]["evaluated"], 0);
    assert_eq!(told[1]["verdict"], Value::Null);
    assert!(bytes(&folder, "rounded.gguf") != bytes(&folder, "model.gguf"));
    // The same in words.
    let out = folder.ok(&arguments("again.gguf", &CONVERT));
    let bits = |line: &Value| format!("{:.4} bits", line["bits_per_byte"].as_f64().unwrap());
    let before = format!(
        "\nconverted from a llama; before, held out {}",
        bits(converted)
    );
    let rounded = format!("\nstep      0: only rounded; held out {}", bits(&told[1]));
    assert!(out.contains(&before) && out.contains(&rounded), "{out}");
    assert!(bytes(&folder, "again.gguf") == bytes(&folder, "model.gguf"));
    // In two parts; the second does not begin with rounded weights.
    let part = ["--checkpoint", "parts", "--stop-after", "1"];
    folder.ok(&arguments("rest.gguf", &[&CONVERT[..], &part].concat()));
    let rest = [&CONVERT[..], &["--checkpoint", "parts", "--resume"]].concat();
    let rest = lines(&folder, &arguments("rest.gguf", &rest));
    assert_eq!(
        (&rest[0]["converted"], &rest[1]["step"]),
        (converted, &told[3]["step"])
    );
    assert!(bytes(&folder, "rest.gguf") == bytes(&folder, "model.gguf"));
    // A model that is no llama is not converted.
    let own = lines(&folder, &arguments("on.gguf", &["--from", "model.gguf"]));
    assert_eq!(own[0]["converted"], Value::Null);
    assert_eq!(names(&own[1])[0], "step");
}

#[test]
fn tokens_of_sentencepiece_stay_those_of_the_model() {
    let folder = folder();
    let pieces = folder.path("pieces.gguf");
    tiny::llama(&pieces, tiny::LLAMA, 1, false).unwrap();
    let file = LanguageFile::open(&pieces).unwrap();
    let vocabulary = Vocabulary::read(&file.reader().unwrap()).unwrap();
    write(&folder.path("float.gguf"), vocabulary);
    record(&folder);
    folder.ok(&arguments("model.gguf", &CONVERT));
    let tokens = |model: &str| folder.ok(&["tokenize", model, "text.txt"]);
    assert_eq!(tokens("model.gguf"), tokens("float.gguf"));
    let run = folder.run(&["generate", "model.gguf", "-p", "The ", "-n", "3"]);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_conversion_that_cannot_be_says_what_it_needs() {
    let folder = with_llama();
    folder.languages();
    let usage = |own: &[&str]| {
        let run = folder.run(&arguments("no.gguf", own));
        assert_eq!(run.code, Some(2), "{run:?}");
        run.err
    };
    let missing = usage(&["--from", "float.gguf"]);
    assert!(
        missing.contains("float.gguf is a llama")
            && missing.contains("--importance FILE")
            && missing.contains("`tercet perplexity float.gguf TEXT --record FILE`"),
        "{missing}"
    );
    let alone = usage(&CONVERT[2..]);
    assert!(alone.contains("--from"), "{alone}");
    // What a run with a bitnet would not read.
    let unread = ["--from", "bitnet.gguf", "--importance", "inputs.gguf"];
    let unread = usage(&unread);
    assert!(
        unread.contains(
            "--importance is for --channels, --heads or a llama, and bitnet.gguf is a bitnet"
        ),
        "{unread}"
    );
    let other = ["--from", "llama.gguf", "--importance", "inputs.gguf"];
    let other = folder.fails(&arguments("no.gguf", &other));
    assert!(other.contains("llama.gguf: tensor `"), "{other}");
    assert!(!folder.path("no.gguf").exists());
    // The memory of a run does not depend on inputs.
    let plan = ["train", "text.txt", "--plan", "--json", "--from"];
    let [llama, bitnet] = ["float.gguf", "model.gguf"].map(|model| {
        if model == "model.gguf" {
            folder.ok(&arguments(model, &CONVERT));
        }
        folder.json(&[&plan[..], &[model]].concat())["weights"].clone()
    });
    assert_eq!(llama, bitnet);
}
