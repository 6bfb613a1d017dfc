//! `tercet inspect`.

use super::support::{Folder, fields, named, size};

#[test]
fn json_holds_the_documented_fields_and_the_values_figures() {
    let folder = Folder::new();
    let path = folder.safetensors(
        "in.safetensors",
        &[
            ("w", &[2, 4], &[-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 0.5]),
            ("bad", &[2], &[f32::NAN, 4.0]),
        ],
    );
    let summary = folder.json(&["inspect", "in.safetensors", "--json"]);
    assert_eq!(
        fields(&summary),
        [
            "bytes",
            "engine",
            "engine_note",
            "format",
            "metadata",
            "tensors",
            "values"
        ]
    );
    assert_eq!(summary["format"], "safetensors");
    assert_eq!(summary["bytes"], size(&path));
    assert_eq!(summary["values"], 10);

    let tensor = named(&summary["tensors"], "w");
    assert_eq!(
        fields(tensor),
        [
            "bits_per_weight",
            "bytes",
            "decoded",
            "dtype",
            "name",
            "shape",
            "values"
        ]
    );
    assert_eq!(tensor["shape"], serde_json::json!([2, 4]));
    assert_eq!(
        (
            &tensor["dtype"],
            &tensor["bytes"],
            &tensor["bits_per_weight"]
        ),
        (&"f32".into(), &32.into(), &32.0.into())
    );
    let values = &tensor["values"];
    assert_eq!(
        fields(values),
        ["abs_mean", "histogram", "max", "min", "not_finite", "zeros"]
    );
    assert_eq!(
        (&values["min"], &values["max"]),
        (&(-1.0).into(), &3.0.into())
    );
    assert_eq!(
        (&values["abs_mean"], &values["zeros"], &values["not_finite"]),
        (&1.0.into(), &2.into(), &0.into())
    );
    let counts: Vec<u64> = values["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 8);
    assert!(
        counts[0] >= 1 && counts[counts.len() - 1] >= 1,
        "both ends hold a value: {counts:?}"
    );

    assert_eq!(named(&summary["tensors"], "bad")["values"]["not_finite"], 1);
}

#[test]
fn the_table_shows_each_tensor_with_a_spark_line() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let table = folder.ok(&["inspect", "in.safetensors"]);
    for name in ["wide.weight", "narrow.weight", "bias"] {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(
            line.contains("f32") && line.contains("32.0000") && line.contains('█'),
            "{line}"
        );
    }
}

#[test]
fn one_tensor_is_looked_at_closely() {
    let folder = Folder::new();
    folder.safetensors(
        "in.safetensors",
        &[("w", &[4], &[0.0, 1.0, 1.0, 2.0]), ("v", &[1], &[7.0])],
    );
    let text = folder.ok(&["inspect", "in.safetensors", "--tensor", "w"]);
    assert!(text.contains("mean |x|     1\n"), "{text}");
    assert!(text.contains("\nmax          2\n"), "{text}");
    let line = folder.fails(&["inspect", "in.safetensors", "--tensor", "x"]);
    assert!(
        line.contains("in.safetensors") && line.contains("`x`"),
        "{line}"
    );
    // One value has no range to count in.
    let text = folder.ok(&["inspect", "in.safetensors", "--tensor", "v"]);
    assert!(text.ends_with("not finite   0\n"), "{text}");
}

#[test]
fn the_other_formats_are_told_by_content() {
    let folder = Folder::new();
    folder.npy("array", &[1.0, -2.0]);
    let summary = folder.json(&["inspect", "array", "--json"]);
    assert_eq!(
        (&summary["format"], &summary["tensors"][0]["values"]["min"]),
        (&"npy".into(), &(-2.0).into())
    );
    folder.model("in.safetensors");
    folder.ok(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "q8_0",
    ]);
    assert_eq!(
        folder.json(&["inspect", "out.gguf", "--json"])["format"],
        "gguf"
    );
}

#[test]
fn a_misspelt_tensor_is_answered_with_the_closest_names() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let line = folder.fails(&["inspect", "in.safetensors", "--tensor", "wide.weigth"]);
    assert!(
        line.ends_with("no tensor named `wide.weigth`; the closest are `wide.weight`\n"),
        "{line}"
    );
}

#[test]
fn tensors_without_figures_say_why() {
    let folder = Folder::new();
    let header = r#"{"none":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},"tiny":{"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]}}"#;
    folder.safetensors_raw("in.safetensors", header, 4);
    let table = folder.ok(&["inspect", "in.safetensors"]);
    assert!(
        table.starts_with("safetensors, ") && table.contains(", 2 tensors, 4 values\n"),
        "{table}"
    );
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("none").ends_with("no values"), "{table}");
    assert!(line("tiny").ends_with("not decoded"), "{table}");

    folder.npy("nan.npy", &[f32::NAN]);
    let table = folder.ok(&["inspect", "nan.npy"]);
    assert!(
        table.contains(", 1 tensor, 1 value\n") && table.ends_with("no finite value\n"),
        "{table}"
    );
    let close = folder.ok(&["inspect", "nan.npy", "--tensor", "nan"]);
    assert!(close.ends_with("values       no finite value\n"), "{close}");
}
