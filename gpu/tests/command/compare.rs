//! `tercet compare`.

use super::support::{Folder, fields, named};

#[test]
fn a_model_equals_itself() {
    let folder = Folder::new();
    folder.model("a.safetensors");
    let report = folder.json(&["compare", "a.safetensors", "a.safetensors", "--json"]);
    assert_eq!(
        fields(&report),
        ["engine", "engine_note", "tensors", "total"]
    );
    let wide = named(&report["tensors"], "wide.weight");
    assert_eq!(fields(wide), ["left", "measures", "name", "right", "shape"]);
    let all = [
        "cosine",
        "count",
        "max_error",
        "mse",
        "relative_error",
        "sqnr_db",
    ];
    for measures in [&wide["measures"], &report["total"]] {
        assert_eq!(fields(measures), all);
        assert_eq!(
            (&measures["mse"], &measures["max_error"]),
            (&0.0.into(), &0.0.into())
        );
        assert!(measures["sqnr_db"].is_null());
        assert!((measures["cosine"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    }
    assert_eq!(report["total"]["count"], 8 * 512 + 6 * 64 + 8);
}

#[test]
fn measures_are_those_of_the_definitions() {
    let folder = Folder::new();
    folder.safetensors("a.safetensors", &[("w", &[2, 2], &[3.0, 0.0, 4.0, 0.0])]);
    folder.safetensors("b.safetensors", &[("w", &[2, 2], &[3.0, 1.0, 4.0, -2.0])]);
    let report = folder.json(&["compare", "a.safetensors", "b.safetensors", "--json"]);
    let total = &report["total"];
    let expected = [
        ("mse", 5.0 / 4.0),
        ("relative_error", 5.0 / 25.0),
        ("sqnr_db", 10.0 * 5f64.log10()),
        ("cosine", 25.0 / (5.0 * 30f64.sqrt())),
        ("max_error", 2.0),
    ];
    for (field, value) in expected {
        assert!(
            (total[field].as_f64().unwrap() - value).abs() < 1e-6,
            "{field}: {}",
            total[field]
        );
    }
    let table = folder.ok(&["compare", "a.safetensors", "b.safetensors"]);
    let line = table.lines().find(|line| line.starts_with("w ")).unwrap();
    assert!(
        line.contains("2 x 2") && line.contains("0.2000") && line.contains("6.99"),
        "{line}"
    );
}

#[test]
fn names_and_shapes_must_be_the_same() {
    let folder = Folder::new();
    folder.safetensors("a.safetensors", &[("w", &[2, 2], &[1.0; 4])]);
    folder.safetensors("b.safetensors", &[("w", &[4], &[1.0; 4])]);
    folder.safetensors(
        "c.safetensors",
        &[("w", &[2, 2], &[1.0; 4]), ("more", &[1], &[1.0])],
    );
    for (left, right, tensor) in [
        ("a", "b", "`w`"),
        ("a", "c", "`more`"),
        ("c", "a", "`more`"),
    ] {
        let (left, right) = (
            format!("{left}.safetensors"),
            format!("{right}.safetensors"),
        );
        let line = folder.fails(&["compare", &left, &right]);
        assert!(
            line.contains(&left) && line.contains(&right) && line.contains(tensor),
            "{line}"
        );
    }
}
