//! `tercet quantize` and `tercet dequantize`.

use std::fs;

use super::support::{Folder, fields, finish, named, size};

/// Every format that needs no further option, with the type of `wide.weight` and of `narrow.weight` (rows of 64) in
/// its file, and the bits that a value of the first takes.
const FORMATS: [(&str, &str, &str, &str, f64); 12] = [
    ("tq1_0", "gguf", "tq1_0", "q4_0", 54.0 * 8.0 / 256.0),
    ("tq2_0", "gguf", "tq2_0", "q4_0", 66.0 * 8.0 / 256.0),
    ("q2_0", "gguf", "q2_0", "q2_0", 18.0 * 8.0 / 64.0),
    ("q4_0", "gguf", "q4_0", "q4_0", 4.5),
    ("q4_1", "gguf", "q4_1", "q4_1", 5.0),
    ("q5_0", "gguf", "q5_0", "q5_0", 5.5),
    ("q5_1", "gguf", "q5_1", "q5_1", 6.0),
    ("q8_0", "gguf", "q8_0", "q8_0", 8.5),
    ("int8", "safetensors", "i8", "i8", 8.0 + 32.0 / 512.0),
    ("ternary", "safetensors", "i8", "i8", 8.0 + 32.0 / 4096.0),
    // Beside the indices: entries, a scale, and two dimensions of 64 bits.
    (
        "palette:2",
        "safetensors",
        "palette:2",
        "palette:2",
        2.0 + (4.0 * 8.0 + 32.0 + 128.0) / 4096.0,
    ),
    (
        "palette:5",
        "safetensors",
        "palette:5",
        "palette:5",
        5.0 + (32.0 * 8.0 + 32.0 + 128.0) / 4096.0,
    ),
];

#[test]
fn every_format_comes_back_with_the_error_that_was_reported() {
    let folder = Folder::new();
    let model = folder.model("in.safetensors");
    for (format, extension, wide, narrow, bits) in FORMATS {
        let stem = format.replace(':', "-");
        let out = format!("{stem}.{extension}");
        let report = folder.json(&[
            "quantize",
            "in.safetensors",
            "-o",
            &out,
            "--to",
            format,
            "--json",
        ]);
        assert_eq!(
            fields(&report),
            [
                "auto",
                "bits_per_weight",
                "bytes_after",
                "bytes_before",
                "engine",
                "engine_note",
                "megabytes_per_second",
                "seconds",
                "tensors"
            ]
        );
        assert_eq!(
            (&report["bytes_before"], &report["bytes_after"]),
            (&size(&model).into(), &size(&folder.path(&out)).into())
        );

        assert!(report["auto"].is_null(), "{report}");
        let tensor = named(&report["tensors"], "wide.weight");
        assert_eq!(
            fields(tensor),
            [
                "beside",
                "bits_per_weight",
                "engine",
                "flushed",
                "from",
                "name",
                "note",
                "relative_error",
                "shape",
                "sqnr_db",
                "to"
            ]
        );
        assert_eq!(
            (&tensor["from"], &tensor["shape"]),
            (&"f32".into(), &serde_json::json!([8, 512]))
        );
        let engine = &report["engine"];
        assert_eq!(
            (&tensor["engine"], &report["engine_note"]),
            (engine, &serde_json::Value::Null)
        );
        assert_eq!(
            tensor["bits_per_weight"].as_f64().unwrap(),
            bits,
            "{format}"
        );
        assert!(tensor["note"].is_null(), "{tensor}");
        let fallback = named(&report["tensors"], "narrow.weight");
        assert_eq!(fallback["note"].is_null(), narrow == wide, "{fallback}");
        let bias = named(&report["tensors"], "bias");
        assert_eq!(
            (&bias["to"], &bias["relative_error"]),
            (&"f32".into(), &serde_json::Value::Null)
        );
        assert!(bias["engine"].is_null(), "{bias}");

        let summary = folder.json(&["inspect", &out, "--json"]);
        assert_eq!(
            named(&summary["tensors"], "wide.weight")["dtype"],
            wide,
            "{format}"
        );
        assert_eq!(
            named(&summary["tensors"], "narrow.weight")["dtype"],
            narrow,
            "{format}"
        );

        // Restored by another command and measured by a third, the error is the one that quantize reported.
        let back = format!("{stem}-back.safetensors");
        let restored = folder.json(&["dequantize", &out, "-o", &back, "--json"]);
        assert_eq!(named(&restored["tensors"], "wide.weight")["to"], "f32");
        let measured = folder.json(&["compare", "in.safetensors", &back, "--json"]);
        for name in ["wide.weight", "narrow.weight"] {
            let told = named(&report["tensors"], name)["relative_error"]
                .as_f64()
                .unwrap();
            let found = named(&measured["tensors"], name)["measures"]["relative_error"]
                .as_f64()
                .unwrap();
            assert!(told > 0.0 && told < 0.7, "{format} {name}: {told}");
            assert!(
                (told - found).abs() <= 1e-9 * told,
                "{format} {name}: told {told}, found {found}"
            );
        }
        assert_eq!(
            named(&measured["tensors"], "bias")["measures"]["max_error"],
            0.0
        );
    }
}

#[test]
fn the_optimal_rule_beats_the_others() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let error = |rule: &str, scale: &str| {
        let arguments = [
            "quantize",
            "in.safetensors",
            "--force",
            "-o",
            "out.gguf",
            "--to",
            "tq2_0",
            "--rule",
            rule,
            "--scale",
            scale,
            "--json",
        ];
        let report = folder.json(&arguments);
        named(&report["tensors"], "wide.weight")["relative_error"]
            .as_f64()
            .unwrap()
    };
    let optimal = error("optimal", "ls");
    for rule in ["absmax", "absmean", "twn"] {
        assert!(optimal < error(rule, "ls"), "{rule}");
        assert!(error(rule, "ls") <= error(rule, "rule"), "{rule}");
    }
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    for (format, extension) in [
        ("tq1_0", "gguf"),
        ("ternary", "safetensors"),
        ("palette:4", "safetensors"),
    ] {
        let quantize = |out: &str, threads: &[&str], variable: Option<&str>| {
            let name = format!("{out}-{}.{extension}", format.replace(':', "-"));
            let mut command =
                folder.command(&["quantize", "in.safetensors", "-o", &name, "--to", format]);
            command.args(threads);
            let output = match variable {
                Some(count) => command.env("RAYON_NUM_THREADS", count).output().unwrap(),
                None => command.env_remove("RAYON_NUM_THREADS").output().unwrap(),
            };
            assert!(output.status.success(), "{output:?}");
            fs::read(folder.path(&name)).unwrap()
        };
        let one = quantize("one", &["--threads", "1"], None);
        assert!(one == quantize("four", &["--threads", "4"], None));
        assert!(one == quantize("three", &[], Some("3")));
    }
}

#[test]
fn globs_choose_tensors() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let types = |out: &str, more: &[&str]| {
        let arguments = [
            &[
                "quantize",
                "in.safetensors",
                "-o",
                out,
                "--to",
                "q4_0",
                "--json",
            ],
            more,
        ]
        .concat();
        let report = folder.json(&arguments);
        ["bias", "narrow.weight", "wide.weight"].map(|name| {
            named(&report["tensors"], name)["to"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    };
    assert_eq!(types("a.gguf", &[]), ["f32", "q4_0", "q4_0"]);
    assert_eq!(
        types("b.gguf", &["--exclude", "wide*"]),
        ["f32", "q4_0", "f32"]
    );
    assert_eq!(
        types("c.gguf", &["--include", "wide*"]),
        ["f32", "f32", "q4_0"]
    );
    assert_eq!(
        types("d.gguf", &["--include", "*weight", "--exclude", "narrow*"]),
        ["f32", "f32", "q4_0"]
    );
    // A glob that matches nothing is a slip of the pen.
    for (option, glob) in [
        ("--include", "["),
        ("--include", "wise*"),
        ("--exclude", "x"),
    ] {
        let quantize = ["quantize", "in.safetensors", "-o", "e.gguf", "--to", "q4_0"];
        let run = finish(folder.command(&quantize).args([option, glob]));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains(glob), "{run:?}");
    }
}

#[test]
fn a_bitnet_file_packs_four_codes_a_byte() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    for (meaning, out) in [
        ("divisor", "divisor.safetensors"),
        ("multiplier", "multiplier.safetensors"),
    ] {
        let report = folder.json(&[
            "quantize",
            "in.safetensors",
            "-o",
            out,
            "--to",
            "bitnet-hf",
            "--weight-scale",
            meaning,
            "--include",
            "wide.weight",
            "--json",
        ]);
        let told = named(&report["tensors"], "wide.weight")["relative_error"]
            .as_f64()
            .unwrap();
        let summary = folder.json(&["inspect", out, "--json"]);
        let packed = named(&summary["tensors"], "wide.weight");
        assert_eq!(
            (&packed["dtype"], &packed["bytes"]),
            (&"bitnet-hf".into(), &(8 * 512 / 4).into())
        );

        let back = format!("back-{out}");
        folder.ok(&["dequantize", out, "-o", &back, "--weight-scale", meaning]);
        let measured = folder.json(&["compare", "in.safetensors", &back, "--json"]);
        let found = named(&measured["tensors"], "wide.weight")["measures"]["relative_error"]
            .as_f64()
            .unwrap();
        assert!(
            (told - found).abs() <= 1e-9 * told,
            "{meaning}: told {told}, found {found}"
        );
    }
}

#[test]
fn floats_of_two_bytes_are_half_as_large() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    folder.ok(&["quantize", "in.safetensors", "-o", "q.gguf", "--to", "q8_0"]);
    for (kind, error) in [("f16", 1e-3), ("bf16", 8e-3)] {
        let out = format!("{kind}.safetensors");
        let report = folder.json(&["dequantize", "q.gguf", "-o", &out, "--to", kind, "--json"]);
        let tensor = named(&report["tensors"], "wide.weight");
        assert_eq!(
            (&tensor["from"], &tensor["to"], &tensor["bits_per_weight"]),
            (&"q8_0".into(), &kind.into(), &16.0.into())
        );
        let measured = folder.json(&["compare", "q.gguf", &out, "--json"]);
        let wide = &named(&measured["tensors"], "wide.weight")["measures"];
        assert!(wide["max_error"].as_f64().unwrap() < error, "{wide}");
    }
}

#[test]
fn people_get_a_line_a_tensor_and_the_totals() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let text = folder.ok(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "tq2_0",
    ]);
    let line = |start: &str| {
        text.lines()
            .find(|line| line.starts_with(start))
            .unwrap()
            .to_owned()
    };
    assert!(line("tensor").contains("bits/weight"), "{text}");
    assert!(
        line("wide.weight").contains("8 x 512") && line("wide.weight").contains("2.0625"),
        "{text}"
    );
    assert!(
        line("narrow.weight").contains("q4_0")
            && line("narrow.weight").len() > line("wide.weight").len(),
        "{text}"
    );
    assert!(
        text.lines()
            .last()
            .unwrap()
            .contains(" bits/weight where quantized), "),
        "{text}"
    );
    let text = folder.ok(&["dequantize", "out.gguf", "-o", "back.safetensors"]);
    assert!(
        text.lines()
            .any(|line| line.starts_with("wide.weight") && line.contains("tq2_0")),
        "{text}"
    );
}

#[test]
fn an_output_is_replaced_only_by_force() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    fs::write(folder.path("out.gguf"), "mine").unwrap();
    let arguments = [
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "q8_0",
    ];
    let line = folder.fails(&arguments);
    assert!(
        line.contains("out.gguf") && line.contains("--force"),
        "{line}"
    );
    let run = finish(folder.command(&arguments).arg("--force"));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        fs::read(folder.path("out.gguf"))
            .unwrap()
            .starts_with(b"GGUF")
    );
    assert_eq!(folder.files().len(), 2, "something is left over");
}
