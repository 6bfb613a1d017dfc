//! The demo's files, read by the formats' own Python packages and run in NumPy, read the same digits.

#[path = "../../host/tests/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// A NumPy product sums in another order, so a digit on the edge between two classes may fall on its other side.
const ON_THE_EDGE: f64 = 1.0;

#[test]
fn numpy_reads_the_same_digits_from_the_files() {
    let Some(python) = support::python_with(&["numpy", "gguf", "safetensors"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tercet"))
        .args(["demo", "--json", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let images = found["images"].as_f64().unwrap();

    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let lines = support::run(&python, "demo.py", [folder.path(), &data]);
    let reference: HashMap<&str, f64> = lines
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(file, right)| (file, right.parse().unwrap()))
        .collect();

    let mut compared = vec![("digits-f32.safetensors", &found["float_accuracy"])];
    for result in found["results"].as_array().unwrap() {
        compared.push((result["file"].as_str().unwrap(), &result["accuracy"]));
    }
    let mut files = 0;
    for (file, accuracy) in compared {
        // The `gguf` package knows no Q2_0, so its files are missing.
        let Some(right) = reference.get(file) else {
            continue;
        };
        let told = accuracy.as_f64().unwrap() * images;
        assert!(
            (told - right).abs() < ON_THE_EDGE + 0.5,
            "{file}: told {told}, NumPy {right}"
        );
        files += 1;
    }
    assert!(files >= 11, "only {files} files were read: {lines}");
}
