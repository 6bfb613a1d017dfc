//! `tercet demo`.

use std::fs;

use serde_json::Value;
use tercet_core::linear::Layout;

use super::support::{Folder, fields, named, size};

const WEIGHTS: f64 = 64.0 * 256.0 + 10.0 * 64.0;

fn number(of: &Value, field: &str) -> f64 {
    of[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field} in {of}"))
}

#[test]
fn the_findings_are_documented_whole_and_plausible() {
    let folder = Folder::new();
    let found = folder.json(&["demo", "--json"]);
    assert_eq!(
        fields(&found),
        [
            "clustering",
            "files",
            "float_accuracy",
            "images",
            "networks",
            "results",
            "seconds",
            "weights"
        ]
    );
    assert_eq!(
        (&found["images"], number(&found, "weights")),
        (&899.into(), WEIGHTS)
    );
    let float = number(&found, "float_accuracy");
    assert!(float > 0.9 && float < 1.0, "{float}");
    assert!(number(&found, "seconds") < 60.0);

    let results = found["results"].as_array().unwrap();
    for format in [
        "tq1_0",
        "tq2_0",
        "q2_0",
        "q4_0",
        "q8_0",
        "int8",
        "ternary",
        "bitnet-hf",
        "palette:4",
        "palette:2",
        "auto",
    ] {
        assert!(
            results.iter().any(|result| result["format"] == format),
            "{format} is missing"
        );
    }
    for result in results {
        assert_eq!(
            fields(result),
            [
                "accuracy",
                "accuracy_int8",
                "bits_per_weight",
                "bytes",
                "file",
                "format",
                "head",
                "hidden",
                "name",
                "note",
                "relative_error",
                "rule"
            ]
        );
        let file = folder
            .path("tercet-demo")
            .join(result["file"].as_str().unwrap());
        assert_eq!(result["bytes"], size(&file), "{result}");
        for field in ["accuracy", "accuracy_int8"] {
            let accuracy = number(result, field);
            assert!(accuracy > 0.2 && accuracy <= 1.0, "{result}");
            let images = accuracy * 899.0;
            assert!(
                (images - images.round()).abs() < 1e-9,
                "no whole number of images: {result}"
            );
        }
        assert!(
            number(result, "relative_error") > 0.0 && number(result, "relative_error") < 1.0,
            "{result}"
        );
        assert!(
            number(result, "bytes") * 8.0 >= number(result, "bits_per_weight") * WEIGHTS * 0.999,
            "{result}"
        );
    }

    let networks = found["networks"].as_array().unwrap();
    let layouts = Layout::ALL.into_iter().filter(|l| l.can_encode());
    for layout in layouts.map(Layout::name) {
        assert!(
            networks.iter().any(|network| network["hidden"] == layout),
            "{layout} is missing"
        );
    }
    for network in networks {
        assert_eq!(
            fields(network),
            [
                "accuracy",
                "bits_per_weight",
                "bytes",
                "digest",
                "file",
                "head",
                "hidden",
                "ram"
            ]
        );
        let file = network["file"].as_str().unwrap();
        let file = folder.path("tercet-demo").join(file);
        assert_eq!(network["bytes"], size(&file), "{network}");
        assert_eq!(network["digest"].as_str().unwrap().len(), 16);
        // With the optimal ternary rule and an int8 head, integers lose at most one digit in a hundred.
        let accuracy = number(network, "accuracy");
        assert!((accuracy - float).abs() < 0.01, "{network}");
        assert!(number(network, "ram") < 1024.0, "{network}");
    }

    // Eight bits lose next to nothing, whichever way they are run; the optimum has the least error at equal bits.
    for name in ["q8_0", "int8"] {
        let result = named(&found["results"], name);
        for field in ["accuracy", "accuracy_int8"] {
            assert!((number(result, field) - float).abs() < 0.01, "{result}");
        }
    }
    for format in ["tq1_0", "tq2_0", "q2_0"] {
        let [least, most] =
            ["optimal", "absmax"].map(|rule| named(&found["results"], &format!("{format} {rule}")));
        assert_eq!(least["bits_per_weight"], most["bits_per_weight"]);
        assert!(
            number(least, "relative_error") < number(most, "relative_error"),
            "{format}"
        );
    }

    // Rows of 64 are no blocks of 256: the fallback shows, and counts in the bits.
    let tq2_0 = named(&found["results"], "tq2_0 optimal");
    assert_eq!(
        (&tq2_0["hidden"], &tq2_0["head"]),
        (&"tq2_0".into(), &"q4_0".into())
    );
    let note = tq2_0["note"].as_str().unwrap();
    assert!(note.starts_with("head.weight: "), "{note}");
    assert!(named(&found["results"], "q2_0 optimal")["note"].is_null());
    let bits = (64.0 * 256.0 * 2.0625 + 640.0 * 4.5) / WEIGHTS;
    assert!(
        (number(tq2_0, "bits_per_weight") - bits).abs() < 1e-9,
        "{tq2_0}"
    );
}

/// Restoring the file with another command and comparing it gives the error in the demo's table.
#[test]
fn the_errors_are_those_of_the_files() {
    let folder = Folder::new();
    let found = folder.json(&["demo", "--out", ".", "--json"]);
    for name in [
        "tq1_0 optimal",
        "q4_0",
        "int8",
        "ternary absmean",
        "bitnet-hf",
        "palette:4",
    ] {
        let result = named(&found["results"], name);
        let format = result["format"].as_str().unwrap().replace(':', "-");
        let out = format!("{format}.back.safetensors");
        folder.ok(&["dequantize", result["file"].as_str().unwrap(), "-o", &out]);
        let measured = folder.json(&["compare", "digits-f32.safetensors", &out, "--json"]);
        let mut error = 0.0;
        let mut energy = 0.0;
        for tensor in ["hidden.weight", "head.weight"] {
            let measures = &named(&measured["tensors"], tensor)["measures"];
            let squared = number(measures, "mse") * number(measures, "count");
            error += squared;
            let relative = number(measures, "relative_error");
            // A matrix that the format kept has no error, and its energy cannot be told from it.
            if relative > 0.0 {
                energy += squared / relative;
            }
        }
        let told = number(result, "relative_error");
        if number(
            &named(&measured["tensors"], "head.weight")["measures"],
            "relative_error",
        ) > 0.0
        {
            assert!(
                (told - error / energy).abs() < 1e-6 * told,
                "{name}: told {told}, found {}",
                error / energy
            );
        } else {
            assert!(told < error / energy, "{name}");
        }
    }
}

#[test]
fn findings_do_not_depend_on_threads_and_a_rerun_replaces_its_files() {
    let folder = Folder::new();
    let run = |threads: &str| {
        let mut found = folder.json(&["demo", "--json", "--threads", threads]);
        found.as_object_mut().unwrap().remove("seconds");
        let mut files = Vec::new();
        for entry in fs::read_dir(folder.path("tercet-demo")).unwrap() {
            let path = entry.unwrap().path();
            files.push((path.clone(), fs::read(path).unwrap()));
        }
        files.sort();
        (found, files)
    };
    assert!(run("1") == run("3"));
}

#[test]
fn the_table_and_the_plot_name_every_format() {
    let folder = Folder::new();
    let text = folder.ok(&["demo", "--out", "here"]);
    let svg = fs::read_to_string(folder.path("here/digits.svg")).unwrap();
    let found = folder.json(&["demo", "--out", "here", "--json"]);
    for result in found["results"].as_array().unwrap() {
        let name = result["name"].as_str().unwrap();
        assert_eq!(svg.matches(&format!(">{name}</text>")).count(), 1, "{name}");
        let row = text.lines().find(|line| {
            line.split_whitespace()
                .take(name.split(' ').count())
                .eq(name.split(' '))
        });
        let accuracy = format!("{:.2} %", number(result, "accuracy") * 100.0);
        assert!(row.unwrap().contains(&accuracy), "{name}: {text}");
    }
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("bits per weight") && svg.contains("on the held-out half"));
    for file in found["files"].as_array().unwrap() {
        assert!(folder.path(file.as_str().unwrap()).is_file(), "{file}");
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tercet-demo")).unwrap();
    let mine = folder.path("tercet-demo/digits-q8_0.gguf");
    let other = folder.path("tercet-demo/notes.txt");
    fs::write(&mine, "mine").unwrap();
    fs::write(&other, "notes").unwrap();
    let line = folder.fails(&["demo"]);
    assert!(
        line.contains("digits-q8_0.gguf") && line.contains("--force"),
        "{line}"
    );
    assert_eq!(
        fs::read_dir(folder.path("tercet-demo")).unwrap().count(),
        2,
        "something was written"
    );
    assert_eq!(fs::read(&mine).unwrap(), b"mine");

    folder.ok(&["demo", "--force"]);
    assert!(fs::read(&mine).unwrap().starts_with(b"GGUF"));
    assert_eq!(fs::read(&other).unwrap(), b"notes");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = Folder::new();
    fs::write(folder.path("file"), "").unwrap();
    let line = folder.fails(&["demo", "--out", "file/inside"]);
    assert!(
        line.contains("file/inside") || line.contains("file\\inside"),
        "{line}"
    );
}

#[test]
fn the_readmes_show_what_is_printed() {
    let shown = |readme: &'static str| -> &str {
        let shown = readme.split("```text\n").nth(1).unwrap();
        shown.split("```").next().unwrap()
    };
    let excerpt = shown(include_str!("../../../README.md"));
    let shown = shown(include_str!("../../demo/README.md"));
    let printed = Folder::new().ok(&["demo"]);
    // All but the last line, which says how long it took.
    let body = |text: &str| {
        let lines: Vec<_> = text.trim_end().lines().map(str::to_owned).collect();
        lines[..lines.len() - 1].to_vec()
    };
    assert_eq!(body(shown), body(&printed));
    assert!(printed.starts_with(excerpt), "{excerpt}");
}

/// All that the demo computes goes through engines: whoever does it, the same is found and written.
#[test]
fn every_engine_finds_the_same() {
    let folder = Folder::new();
    let found = |out: &str, more: &[&str]| {
        let run = folder.run(&[&["demo", "--json", "--out", out], more].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        let mut found: Value = serde_json::from_str(&run.out).unwrap();
        let found = found.as_object_mut().unwrap();
        found.remove("seconds");
        found.remove("files");
        (found.clone(), run.err)
    };
    let (expected, told) = found("auto", &[]);
    assert_eq!(told, "");
    let (scalar, told) = found("scalar", &["--backend", "scalar", "--explain"]);
    assert!(scalar == expected, "{scalar:?}");
    for operation in ["quantize_ternary: ", "encode: ", "kmeans: ", "matmul: "] {
        let line = told.lines().any(|line| line.starts_with(operation));
        assert!(line, "{operation}\n{told}");
    }
    for file in fs::read_dir(folder.path("auto")).unwrap() {
        let name = file.unwrap().file_name();
        let read = |out: &str| fs::read(folder.path(out).join(&name)).unwrap();
        assert!(read("auto") == read("scalar"), "{}", name.display());
    }
    // A microcontroller has no memory for all of its points.
    let line = folder.fails(&["demo", "--out", "edge", "--profile", "edge"]);
    assert!(
        line.starts_with("error: --profile edge: ") && line.contains(" bytes of memory and has "),
        "{line}"
    );
}
