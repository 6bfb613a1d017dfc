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
    assert!(files >= 13, "only {files} files were read: {lines}");
}

/// The demo's clusters, scored by scikit-learn, and scikit-learn's own, which the demo prints beside them.
#[test]
fn scikit_learn_finds_the_scores_that_the_demo_tells() {
    let Some(python) = support::python_with(&["numpy", "sklearn"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let tercet = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tercet"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let images = data.join("images.npy");
    let command = [
        "kmeans",
        images.to_str().unwrap(),
        "-k",
        "10",
        "--n-init",
        "4",
    ];
    tercet(&[&command[..], &["--labels", "labels.npy"]].concat());
    let found: serde_json::Value = serde_json::from_str(&tercet(&["demo", "--json"])).unwrap();
    let printed = tercet(&["demo"]);

    let labels = folder.path().join("labels.npy");
    let lines = support::run(&python, "demo.py", [Path::new("clusters"), &data, &labels]);
    let scores = |name: &str| -> [f64; 2] {
        let line = lines
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        let mut numbers = line
            .split_whitespace()
            .map(|number| number.parse().unwrap());
        [numbers.next().unwrap(), numbers.next().unwrap()]
    };
    let [rand, purity] = scores("labels");
    let told = |field: &str| found["clustering"][field].as_f64().unwrap();
    assert!((told("adjusted_rand") - rand).abs() < 1e-12, "{rand}");
    assert!((told("purity") - purity).abs() < 1e-12, "{purity}");

    for (name, words) in [("pixels", "the same pixels"), ("recipe", "its recipe")] {
        let row = printed.lines().find(|line| line.contains(words)).unwrap();
        // … 0.657  78.4 %
        let mut words = row.split_whitespace().rev().skip(1);
        let mut told = || words.next().unwrap().parse::<f64>().unwrap();
        let (told_purity, told_rand) = (told(), told());
        let [rand, purity] = scores(name);
        // Another BLAS or another number of threads moves a few images of 1,797.
        assert!((told_rand - rand).abs() < 0.006, "{row}: {rand}");
        assert!(
            (told_purity - purity * 100.0).abs() < 0.6,
            "{row}: {purity}"
        );
    }
}
