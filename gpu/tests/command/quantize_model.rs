//! `tercet quantize` of language models: what comes of it runs.

use std::fs;

use tercet_core::block::Format;
use tercet_core::gguf::{Reader, TensorType};
use tercet_host::DType;
use tercet_host::language::tiny;

use super::checkpoints::Hf;
use super::support::{Folder, fields, named};

const TEXT: &str = "the cat and the dog sing on the ship that brings them over the sea, and then they sing again. ";

/// Keys and values of a file but the one that names its type, in their order.
fn metadata(bytes: &[u8]) -> Vec<(String, String)> {
    let reader = Reader::new(bytes).unwrap();
    let entries = reader
        .metadata()
        .filter(|(key, _)| *key != "general.file_type");
    let all = |value: &tercet_core::gguf::Value<'_>| match value.as_array() {
        Some(array) => array.iter().map(|item| format!("{item:?},")).collect(),
        None => format!("{value:?}"),
    };
    entries
        .map(|(key, value)| (key.to_owned(), all(&value)))
        .collect()
}

#[test]
fn a_llama_keeps_its_metadata_and_its_floats_and_runs() {
    let folder = Folder::new();
    Hf::llama().write(&folder, "model", 1);
    folder.ok(&["import", "model", "-o", "model.gguf"]);
    let before = folder.written("model.gguf");
    for (to, file_type, matrices, down) in [
        ("q8_0", 7, 8, 8),
        ("q4_0", 2, 2, 2),
        ("q4_1", 3, 3, 3),
        // Rows of 64 and of 96 go where llama.cpp has them go.
        ("tq2_0", 37, 2, 2),
        ("q2_0", 41, 42, 2),
    ] {
        let out = format!("{to}.gguf");
        let report = folder.json(&["quantize", "model.gguf", "-o", &out, "--to", to, "--json"]);
        let bytes = folder.written(&out);
        assert_eq!(metadata(&bytes), metadata(&before), "{to}");
        let reader = Reader::new(&bytes).unwrap();
        assert_eq!(
            reader.get("general.file_type"),
            Some(u32::into(file_type)),
            "{to}"
        );
        let whole = Reader::new(&before).unwrap();
        for tensor in reader.tensors() {
            let kind = match tensor.name {
                "token_embd.weight" | "output.weight" => TensorType(8),
                name if name.ends_with("down.weight") => TensorType(down),
                name if name.ends_with("norm.weight") || name.ends_with("bias") => TensorType::F32,
                _ => TensorType(matrices),
            };
            assert_eq!(tensor.kind, kind, "{to} {}", tensor.name);
            if kind == TensorType::F32 {
                assert!(tensor.data == whole.tensor(tensor.name).unwrap().data);
            }
        }
        // One scale a row: of both blocks of 32.
        let embedding = reader.tensor("token_embd.weight").unwrap().data;
        assert!(
            embedding.chunks(68).all(|row| row[..2] == row[34..36]),
            "{to}"
        );
        let note = &named(&report["tensors"], "output.weight")["note"];
        assert_eq!(note.is_null(), to == "q8_0", "{note}");
        let digests = ["1", "2"].map(|threads| {
            let arguments = [
                "generate",
                &out,
                "-p",
                "the",
                "-n",
                "4",
                "--digest",
                "--threads",
                threads,
            ];
            folder.ok(&arguments)
        });
        assert_eq!(digests[0], digests[1], "{to}");
        folder.ok(&[
            "quantize",
            "model.gguf",
            "-o",
            "again.gguf",
            "--to",
            to,
            "--threads",
            "1",
            "--force",
        ]);
        assert!(folder.written("again.gguf") == bytes, "{to}");
    }
}

#[test]
fn ternary_floats_of_a_bitnet_keep_their_codes_and_scales() {
    let folder = Folder::new();
    let floats = folder.path("floats.gguf");
    for (parameters, formats) in [
        (tiny::BITNET_64, &[Format::Q2_0][..]),
        (tiny::BITNET, &[Format::Tq1_0, Format::Tq2_0]),
    ] {
        tiny::bitnet(&floats, parameters, 3, DType::F32, true).unwrap();
        for &format in formats {
            let exact = folder.path("exact.gguf");
            tiny::bitnet(&exact, parameters, 3, DType::Block(format), true).unwrap();
            let to = format.name();
            folder.ok(&[
                "quantize",
                "floats.gguf",
                "-o",
                "out.gguf",
                "--to",
                to,
                "--force",
            ]);
            assert!(
                folder.written("out.gguf") == folder.written("exact.gguf"),
                "{to}"
            );
        }
    }
    // Rows of 64 have no ternary block of 256; a rule of one's own has its blocks.
    tiny::bitnet(&floats, tiny::BITNET_64, 3, DType::F32, true).unwrap();
    let quantize = [
        "quantize",
        "floats.gguf",
        "-o",
        "out.gguf",
        "--force",
        "--json",
        "--to",
    ];
    let report = folder.json(&[&quantize[..], &["tq2_0"]].concat());
    let tensor = named(&report["tensors"], "blk.0.ffn_up.weight");
    assert_eq!(
        (&tensor["to"], &tensor["relative_error"]),
        (&"q2_0".into(), &0.0.into())
    );
    assert_eq!(
        tensor["note"],
        "q2_0: rows of 64 do not divide into tq2_0 blocks of 256"
    );
    let report = folder.json(&[&quantize[..], &["tq2_0", "--rule", "absmean"]].concat());
    assert_eq!(
        named(&report["tensors"], "blk.0.ffn_up.weight")["to"],
        "q4_0"
    );
    // What an import makes of master weights at once, it makes by way of floats: the codes stay, and so do the rows'
    // scales.
    Hf::bitnet().write(&folder, "model", 1);
    folder.ok(&[
        "import",
        "model",
        "-o",
        "floats.gguf",
        "--to",
        "f32",
        "--force",
    ]);
    folder.ok(&["import", "model", "-o", "exact.gguf", "--force"]);
    folder.ok(&[
        "quantize",
        "floats.gguf",
        "-o",
        "out.gguf",
        "--to",
        "q2_0",
        "--force",
    ]);
    assert!(folder.written("out.gguf") == folder.written("exact.gguf"));
}

#[test]
fn auto_goes_by_inputs_that_perplexity_recorded() {
    let folder = Folder::new();
    Hf::llama().write(&folder, "model", 1);
    folder.ok(&["import", "model", "-o", "model.gguf"]);
    fs::write(folder.path("text"), TEXT.repeat(4)).unwrap();
    let record = [
        "perplexity",
        "model.gguf",
        "text",
        "--record",
        "inputs.gguf",
    ];
    let said = folder.ok(&record);
    let alone = folder.json(&["perplexity", "model.gguf", "text", "--json"]);
    assert!(alone["recorded"].is_null());
    let inputs = folder.written("inputs.gguf");
    let count = Reader::new(&inputs).unwrap().tensors().count() / 2;
    let line = format!("\ninputs of {count} tensors in inputs.gguf\n");
    assert!(said.ends_with(&line), "{said}");
    // What is there stays, unless it may go; a text or a model never goes.
    assert!(folder.fails(&record).contains("inputs.gguf"));
    for input in ["text", "model.gguf"] {
        let over = [
            "perplexity",
            "model.gguf",
            "text",
            "--record",
            input,
            "--force",
        ];
        assert!(folder.fails(&over).contains(input));
    }
    let threads = ["--force", "--threads", "1", "--json"];
    let report = folder.json(&[&record[..], &threads].concat());
    assert_eq!(
        (&report["sum"], &report["recorded"]),
        (&alone["sum"], &count.into())
    );
    assert_eq!(folder.written("inputs.gguf"), inputs);
    let quantize = [
        "quantize",
        "model.gguf",
        "--to",
        "auto",
        "--bits",
        "4",
        "-o",
    ];
    let importance = ["out.gguf", "--importance", "inputs.gguf"];
    let report = folder.json(&[&quantize[..], &importance, &["--json"]].concat());
    assert_eq!(
        fields(&report["auto"]),
        ["bits", "gap", "squared_error", "weighed"]
    );
    assert_eq!(report["auto"]["weighed"], true);
    folder.ok(&["perplexity", "out.gguf", "text"]);
    let said = folder.ok(&[&quantize[..], &importance, &["--force"]].concat());
    assert!(
        said.contains("auto: relative squared error of products "),
        "{said}"
    );
    let other = ["other.gguf", "--importance", "model.gguf"];
    let line = folder.fails(&[&quantize[..], &other].concat());
    assert!(line.contains("model.gguf: no tensor named `"), "{line}");
}

#[test]
fn perplexity_before_and_after_is_that_of_the_models() {
    let folder = Folder::new();
    Hf::llama().write(&folder, "model", 1);
    folder.ok(&["import", "model", "-o", "model.gguf"]);
    fs::write(folder.path("text"), TEXT.repeat(4)).unwrap();
    let quantize = [
        "quantize",
        "model.gguf",
        "-o",
        "out.gguf",
        "--to",
        "q4_0",
        "--perplexity",
        "text",
    ];
    let report = folder.json(&[&quantize[..], &["--json"]].concat());
    assert_eq!(
        fields(&report["perplexity"]),
        ["after", "before", "context", "count", "tokens"]
    );
    for (which, model) in [("before", "model.gguf"), ("after", "out.gguf")] {
        let alone = folder.json(&["perplexity", model, "text", "--json"]);
        let found = &report["perplexity"][which];
        for field in fields(found) {
            assert_eq!(found[field], alone[field], "{which} {field}");
        }
        assert_eq!(report["perplexity"]["count"], alone["count"]);
    }
    assert_ne!(
        report["perplexity"]["before"],
        report["perplexity"]["after"]
    );
    let said = folder.ok(&[&quantize[..], &["--force"]].concat());
    assert!(
        said.contains("\nperplexity ") && said.contains("tokens in windows of 128"),
        "{said}"
    );
    // What cannot be scored costs nothing.
    fs::remove_file(folder.path("out.gguf")).unwrap();
    fs::write(folder.path("text"), "").unwrap();
    assert!(folder.fails(&quantize).contains("text: "));
    fs::remove_file(folder.path("text")).unwrap();
    assert!(folder.fails(&quantize).contains("text: cannot read"));
}
