//! `tercet quantize --to palette:N`.

use serde_json::Value;

use super::support::{Folder, fields, finish, named, noise};

const QUANTIZE: [&str; 4] = ["quantize", "in.safetensors", "-o", "out.safetensors"];

/// Quantizes `in.safetensors` and gives the report.
fn quantized(folder: &Folder, more: &[&str]) -> Value {
    folder.json(&[&QUANTIZE, more, &["--force", "--json"]].concat())
}

fn error(tensor: &Value) -> f64 {
    tensor["relative_error"].as_f64().unwrap()
}

#[test]
fn a_palette_is_shown_beside_q4_0_and_q8_0() {
    let folder = Folder::new();
    folder.safetensors(
        "in.safetensors",
        &[
            ("odd.weight", &[6, 33], &noise(1, 6 * 33)),
            ("wide.weight", &[8, 512], &noise(2, 8 * 512)),
        ],
    );
    let report = quantized(&folder, &["--to", "palette:4"]);
    let beside = named(&report["tensors"], "wide.weight")["beside"]
        .as_array()
        .unwrap();
    assert_eq!(beside.len(), 2);
    for (other, format) in beside.iter().zip(["q4_0", "q8_0"]) {
        assert_eq!(
            fields(other),
            ["bits_per_weight", "format", "relative_error"]
        );
        assert_eq!(other["format"], format);
        let out = format!("{format}.gguf");
        let alone = [
            "quantize",
            "in.safetensors",
            "-o",
            &out,
            "--to",
            format,
            "--json",
        ];
        let alone = folder.json(&alone);
        let alone = named(&alone["tensors"], "wide.weight");
        for field in ["bits_per_weight", "relative_error"] {
            assert_eq!(other[field], alone[field], "{format}");
        }
        assert_eq!(alone["beside"], serde_json::json!([]));
    }
    // Rows of 33 are no whole blocks.
    assert_eq!(
        named(&report["tensors"], "odd.weight")["beside"],
        serde_json::json!([])
    );

    let text = folder.ok(&[&QUANTIZE[..], &["--to", "palette:4", "--force"]].concat());
    let head = text.lines().next().unwrap();
    assert!(
        head.contains("rel. error  SQNR dB   in q4_0   in q8_0  note"),
        "{text}"
    );
    let row = text
        .lines()
        .find(|line| line.starts_with("wide.weight"))
        .unwrap();
    // Name, shape in three words, and seven figures and types.
    assert_eq!(row.split_whitespace().count(), 11, "{text}");
    // Other formats have no such columns.
    let text = folder.ok(&["quantize", "in.safetensors", "-o", "a.gguf", "--to", "q8_0"]);
    assert!(!text.contains("in q4_0"), "{text}");
}

#[test]
fn more_bits_and_smaller_groups_lose_less() {
    let folder = Folder::new();
    // Rows of different size, as smaller groups are for.
    let mut values = noise(3, 24 * 256);
    for (row, values) in values.chunks_mut(256).enumerate() {
        values.iter_mut().for_each(|x| *x *= (1 + row) as f32);
    }
    folder.safetensors("in.safetensors", &[("w", &[24, 256], &values)]);
    let loss = |bits: &str, per: &str| {
        let report = quantized(&folder, &["--to", bits, "--per", per]);
        let tensor = named(&report["tensors"], "w");
        assert_eq!(tensor["to"], bits);
        (error(tensor), tensor["bits_per_weight"].as_f64().unwrap())
    };
    let coarse = ["tensor", "rows:12", "rows:4", "row"].map(|per| loss("palette:3", per));
    assert!(
        coarse.is_sorted_by(|a, b| a.0 > b.0 && a.1 < b.1),
        "{coarse:?}"
    );
    let finer = ["palette:1", "palette:2", "palette:4", "palette:6"].map(|bits| loss(bits, "row"));
    assert!(
        finer.is_sorted_by(|a, b| a.0 > b.0 && a.1 < b.1),
        "{finer:?}"
    );
}

#[test]
fn importances_move_the_entries() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let ones = vec![1.0; 8 * 512];
    let mut few = ones.clone();
    few[7] = 1e6;
    for (name, wide) in [("ones", &ones), ("few", &few)] {
        let narrow = vec![1.0; 6 * 64];
        let name = format!("{name}.safetensors");
        folder.safetensors(
            &name,
            &[
                ("narrow.weight", &[6, 64], &narrow),
                ("wide.weight", &[8, 512], wide),
            ],
        );
    }
    let plain = error(named(
        &quantized(&folder, &["--to", "palette:2"])["tensors"],
        "wide.weight",
    ));
    let weighted = |file: &str| {
        let report = quantized(&folder, &["--to", "palette:2", "--importance", file]);
        error(named(&report["tensors"], "wide.weight"))
    };
    assert_eq!(weighted("ones.safetensors"), plain);
    // The plain error is what weights give up.
    assert!(weighted("few.safetensors") > plain);

    std::fs::remove_file(folder.path("out.safetensors")).unwrap();
    folder.safetensors(
        "short.safetensors",
        &[("wide.weight", &[4, 512], &ones[..4 * 512])],
    );
    let arguments = [
        &QUANTIZE[..],
        &["--to", "palette:2", "--include", "wide*", "--importance"],
    ]
    .concat();
    let line = folder.fails(&[&arguments[..], &["short.safetensors"]].concat());
    assert!(
        line.contains("short.safetensors: tensor `wide.weight`: its shape is [4, 512]"),
        "{line}"
    );
    let line = folder.fails(&[&arguments[..], &["gone.safetensors"]].concat());
    assert!(line.contains("gone.safetensors"), "{line}");
}

#[test]
fn what_does_not_go_together_is_wrong_usage() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    for (more, told) in [
        (&["--to", "palette:0"] as &[&str], "palette:0"),
        (&["--to", "palette:9"], "palette:9"),
        (&["--to", "palette"], "palette"),
        (&["--to", "palette:4", "--per", "rows:0"], "rows:0"),
        (&["--to", "palette:4", "--per", "block:64"], "part of a row"),
        (&["--to", "int8", "--per", "rows:2"], "several rows"),
        (
            &["--to", "int8", "--importance", "in.safetensors"],
            "an importance",
        ),
        (
            &["--to", "palette:4", "--rule", "optimal"],
            "a ternary rule",
        ),
    ] {
        let run = finish(folder.command(&QUANTIZE).args(more));
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(2), ""),
            "{more:?}: {run:?}"
        );
        assert!(run.err.contains(told), "{more:?}: {}", run.err);
        assert!(!folder.path("out.safetensors").exists());
    }
}
