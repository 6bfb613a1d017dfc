//! Every failure is one line that names the file, the tensor and the place, and leaves nothing behind.

use std::fs;

use super::support::{Folder, noise};

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::new();
    for arguments in [
        &["inspect", "gone.gguf"] as &[&str],
        &["quantize", "gone.gguf", "-o", "out.gguf", "--to", "q8_0"],
        &["dequantize", "gone.gguf", "-o", "out.safetensors"],
        &["compare", "gone.gguf", "gone.gguf"],
        &["calibrate", "gone.gguf", "--method", "mse"],
    ] {
        let line = folder.fails(arguments);
        assert!(
            line.contains("gone.gguf") && line.contains("No such file"),
            "{line}"
        );
    }
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let folder = Folder::new();
    fs::write(
        folder.path("text.gguf"),
        "this is no model, whatever its name says",
    )
    .unwrap();
    fs::write(folder.path("empty.safetensors"), "").unwrap();
    fs::write(folder.path("short.gguf"), b"GGUF\x03\x00").unwrap();
    fs::create_dir(folder.path("folder.npy")).unwrap();
    for name in ["text.gguf", "empty.safetensors", "short.gguf", "folder.npy"] {
        let line = folder.fails(&["inspect", name]);
        assert!(line.contains(name), "{line}");
    }
}

#[test]
fn a_value_that_is_not_finite_is_named_by_tensor_and_index() {
    let folder = Folder::new();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = noise(1, 4 * 256);
        values[700] = bad;
        values[900] = bad;
        folder.safetensors(
            "in.safetensors",
            &[
                ("good", &[4, 256], &noise(2, 4 * 256)),
                ("x", &[4, 256], &values),
            ],
        );
        for (format, out) in [
            ("tq2_0", "out.gguf"),
            ("q8_0", "out.gguf"),
            ("int8", "out.safetensors"),
            ("ternary", "out.safetensors"),
            ("bitnet-hf", "out.safetensors"),
        ] {
            for rule in [None, Some("optimal")] {
                if rule.is_some() && !["tq2_0", "ternary"].contains(&format) {
                    continue;
                }
                let mut arguments = vec!["quantize", "in.safetensors", "-o", out, "--to", format];
                arguments.extend(rule.iter().flat_map(|rule| ["--rule", rule]));
                let line = folder.fails(&arguments);
                assert!(
                    line.contains("in.safetensors") && line.contains("`x`"),
                    "{format}: {line}"
                );
                assert!(
                    line.contains("value 700 is not finite"),
                    "{format} {rule:?}: {line}"
                );
            }
        }
    }
}

#[test]
fn an_unknown_type_is_named() {
    let folder = Folder::new();
    folder.safetensors_raw(
        "in.safetensors",
        r#"{"w":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}}"#,
        4,
    );
    let line = folder.fails(&["inspect", "in.safetensors"]);
    assert!(
        line.contains("in.safetensors: tensor `w`: ") && line.contains("unknown dtype \"Q7\""),
        "{line}"
    );
}

#[test]
fn a_model_without_floats_is_copied_and_said_to_be() {
    let folder = Folder::new();
    folder.safetensors_raw(
        "in.safetensors",
        r#"{"my ids ☃":{"dtype":"I64","shape":[2,2],"data_offsets":[0,32]}}"#,
        32,
    );
    for options in [
        &["--to", "tq2_0"] as &[&str],
        &["--to", "auto", "--bits", "2"],
    ] {
        let quantize = ["quantize", "in.safetensors", "-o", "out.gguf", "--force"];
        let text = folder.ok(&[&quantize as &[&str], options].concat());
        assert!(
            text.contains("my ids ☃") && text.contains("i64 is not a float type"),
            "{text}"
        );
        assert!(
            text.contains("(nothing quantized, see the notes)"),
            "{text}"
        );
        assert!(!text.contains("auto: "), "{text}");
    }
}

#[test]
fn offsets_past_the_end_are_refused() {
    let folder = Folder::new();
    folder.safetensors_raw(
        "in.safetensors",
        r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
        4,
    );
    let line = folder.fails(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "q8_0",
    ]);
    assert!(line.contains("in.safetensors"), "{line}");
}

#[test]
fn a_gguf_cut_anywhere_is_refused() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    folder.ok(&[
        "quantize",
        "in.safetensors",
        "-o",
        "whole.gguf",
        "--to",
        "tq2_0",
    ]);
    let whole = fs::read(folder.path("whole.gguf")).unwrap();
    for part in [1, 3, 7, 15, 25, 60, 95] {
        fs::write(folder.path("cut.gguf"), &whole[..whole.len() * part / 100]).unwrap();
        let line = folder.fails(&["inspect", "cut.gguf"]);
        assert!(line.contains("cut.gguf"), "{part} %: {line}");
    }
}

#[test]
fn output_and_input_are_never_the_same_file() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let here = folder.path("in.safetensors").display().to_string();
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut names = vec![
        "in.safetensors".to_owned(),
        "./in.safetensors".to_owned(),
        here,
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("in.safetensors", folder.path("soft.safetensors")).unwrap();
        fs::hard_link(
            folder.path("in.safetensors"),
            folder.path("hard.safetensors"),
        )
        .unwrap();
        names.extend(["soft.safetensors".to_owned(), "hard.safetensors".to_owned()]);
    }
    for name in &names {
        let line = folder.fails(&[
            "quantize",
            "in.safetensors",
            "-o",
            name,
            "--to",
            "int8",
            "--force",
        ]);
        assert!(line.contains("same file"), "{line}");
        let line = folder.fails(&["dequantize", "in.safetensors", "-o", name, "--force"]);
        assert!(line.contains("same file"), "{line}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let line = folder.fails(&[
        "quantize",
        "in.safetensors",
        "-o",
        "no/such/folder/out.gguf",
        "--to",
        "q8_0",
    ]);
    assert!(line.contains("out.gguf: cannot create: "), "{line}");
    // The temporary file is the command's own affair.
    assert!(!line.contains(".part"), "{line}");
    let line = folder.fails(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.bin",
        "--to",
        "q8_0",
    ]);
    assert!(line.contains("out.bin"), "{line}");
    let line = folder.fails(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.safetensors",
        "--to",
        "tq2_0",
    ]);
    assert!(line.contains("out.safetensors"), "{line}");
    let line = folder.fails(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "int8",
    ]);
    assert!(line.contains("out.gguf"), "{line}");
}

/// A file size limit stands in for a full disk: the write fails half-way, with an error instead of a signal.
#[test]
#[cfg(unix)]
fn a_write_that_fails_half_way_leaves_nothing() {
    let folder = Folder::new();
    folder.safetensors(
        "in.safetensors",
        &[("w", &[512, 1024], &noise(1, 512 * 1024))],
    );
    for (format, out) in [("q8_0", "out.gguf"), ("int8", "out.safetensors")] {
        let before = folder.files();
        let script =
            r#"trap '' XFSZ; ulimit -f 64; exec "$0" quantize in.safetensors -o "$1" --to "$2""#;
        let output = std::process::Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_tercet"), out, format])
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(
            line.starts_with("error: ") && line.lines().count() == 1 && line.contains(out),
            "{line}"
        );
        assert!(folder.files() == before, "{format}: something is left over");
    }
}
