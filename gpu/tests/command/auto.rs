//! `tercet quantize --to auto`: formats of least error within a budget of bits.

use std::fs;

use serde_json::Value;

use super::support::{Folder, fields};

/// Quantizes the folder's model; gives the report and the squared error that `compare` finds.
fn quantize(folder: &Folder, options: &[&str]) -> (Value, f64) {
    let arguments = [
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.gguf",
            "--force",
            "--json",
        ],
        options,
    ]
    .concat();
    let report = folder.json(&arguments);
    let measured = folder.json(&["compare", "in.safetensors", "out.gguf", "--json"]);
    let total = &measured["total"];
    let number = |field: &str| total[field].as_f64().unwrap();
    (report, number("mse") * number("count"))
}

#[test]
fn auto_stays_within_its_bits() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let mut last = f64::INFINITY;
    for bits in ["2.2", "3", "4.5", "8.5"] {
        let (report, error) = quantize(&folder, &["--to", "auto", "--bits", bits]);
        let spent = report["bits_per_weight"].as_f64().unwrap();
        assert!(spent <= bits.parse().unwrap(), "{bits}: {report}");
        assert!(error <= last, "{bits} bits are worse than fewer");
        last = error;
    }
}

/// The bound is on every choice of formats for `wide.weight` and `narrow.weight`, so also on one for both.
#[test]
fn no_format_within_the_bits_passes_the_bound_of_auto() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let (mut compared, mut gaps) = (0, 0);
    for bits in [2.2, 2.3, 3.0, 4.5, 8.0, 8.5] {
        let (report, error) = quantize(&folder, &["--to", "auto", "--bits", &bits.to_string()]);
        let auto = &report["auto"];
        assert_eq!(fields(auto), ["bits", "gap", "squared_error", "weighed"]);
        let number = |field: &str| auto[field].as_f64().unwrap();
        assert_eq!(number("bits"), bits);
        assert!((number("squared_error") - error).abs() <= 1e-9 * error);
        assert!(number("gap") >= 0.0 && number("gap") < error, "{auto}");
        gaps += u32::from(number("gap") > 1e-3 * error);
        for format in ["tq1_0", "tq2_0", "q2_0", "q4_0", "q8_0"] {
            for rule in ["absmax", "optimal"] {
                let rule: &[&str] = match format {
                    "q4_0" | "q8_0" => &[],
                    _ => &["--rule", rule],
                };
                let (plain, other) = quantize(&folder, &[&["--to", format], rule].concat());
                if plain["bits_per_weight"].as_f64().unwrap() <= bits {
                    let bound = number("squared_error") - number("gap");
                    assert!(other >= bound * (1.0 - 1e-9), "{bits} {format} {rule:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(
        compared > 10 && gaps > 0,
        "{compared} comparisons, {gaps} gaps"
    );
}

#[test]
fn auto_takes_the_optimal_rule_unless_told_another() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let auto = |rule: &[&str]| {
        let (_, error) = quantize(
            &folder,
            &[&["--to", "auto", "--bits", "2.3"], rule].concat(),
        );
        (fs::read(folder.path("out.gguf")).unwrap(), error)
    };
    let (bytes, error) = auto(&[]);
    assert!(bytes == auto(&["--rule", "optimal"]).0);
    assert!(error < auto(&["--rule", "absmax"]).1);
}

#[test]
fn people_read_the_guarantee() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let quantize = [
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "auto",
    ];
    let text = folder.ok(&[&quantize as &[&str], &["--bits", "3"]].concat());
    let line = text
        .lines()
        .find(|line| line.starts_with("auto: "))
        .unwrap();
    assert!(
        line.contains("within 3 bits/weight saves at most ") && line.ends_with(" % of it"),
        "{line}"
    );
}

#[test]
fn bits_are_asked_for_and_too_few_are_told_how_many_it_takes() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let quantize = [
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "auto",
    ];
    let run = folder.run(&quantize);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("--bits <BITS>"), "{run:?}");

    let few = [&quantize as &[&str], &["--bits", "1.5"]].concat();
    let line = folder.fails(&few);
    let (told, least) = line
        .trim_end()
        .split_once("the smallest formats need ")
        .unwrap();
    assert!(told.contains("1.5 bits per weight are too few"), "{line}");
    folder.ok(&[&quantize as &[&str], &["--bits", least]].concat());
}
