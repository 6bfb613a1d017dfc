//! What every subcommand shares: help, usage errors, completions, standard output.

use std::process::Stdio;

use super::support::{Folder, finish};

const SUBCOMMANDS: [&str; 21] = [
    "quantize",
    "dequantize",
    "inspect",
    "compare",
    "calibrate",
    "import",
    "generate",
    "chat",
    "perplexity",
    "tokenize",
    "train",
    "kmeans",
    "assign",
    "elbow",
    "search",
    "info",
    "bench",
    "tune",
    "verify",
    "demo",
    "completions",
];

#[test]
fn every_help_has_examples_and_fits_a_terminal() {
    let folder = Folder::new();
    let top = folder.ok(&["--help"]);
    for subcommand in SUBCOMMANDS {
        assert!(
            top.contains(&format!("\n  {subcommand} ")),
            "{subcommand} is not listed"
        );
        let help = folder.ok(&[subcommand, "--help"]);
        let examples = &help[help.find("Examples:\n").unwrap()..];
        assert!(
            examples.contains(&format!("  tercet {subcommand}")),
            "{help}"
        );
        for line in top.lines().chain(help.lines()) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn the_version_is_the_packages() {
    let folder = Folder::new();
    assert_eq!(
        folder.ok(&["--version"]),
        format!("tercet {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn wrong_usage_ends_in_two() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let before = folder.files();
    for arguments in [
        &[] as &[&str],
        &["unheard-of"],
        &["inspect"],
        &["inspect", "in.safetensors", "--threads", "0"],
        &["quantize", "in.safetensors", "--to", "q8_0"],
        &["quantize", "in.safetensors", "-o", "out.gguf"],
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.gguf",
            "--to",
            "q9_0",
        ],
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.gguf",
            "--to",
            "auto",
        ],
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.gguf",
            "--to",
            "tq2_0",
            "--rule",
            "best",
        ],
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.safetensors",
            "--to",
            "int8",
            "--per",
            "block:0",
        ],
        &["calibrate", "--method", "mse"],
        &[
            "calibrate",
            "in.safetensors",
            "--method",
            "mse",
            "--percent",
            "99",
        ],
        &["completions", "cmd"],
    ] {
        let run = folder.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert_eq!(run.out, "", "{arguments:?}");
        assert!(!run.err.is_empty(), "{arguments:?}");
    }
    assert_eq!(folder.files(), before);
}

#[test]
fn completions_know_every_subcommand() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.ok(&["completions", shell]);
        for subcommand in SUBCOMMANDS {
            assert!(
                script.contains(subcommand),
                "{shell} does not complete {subcommand}"
            );
        }
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let folder = Folder::new();
    let mut child = folder
        .command(&["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_is_a_failure() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let run = finish(Folder::new().command(&["completions", "bash"]).stdout(full));
    assert_eq!(run.code, Some(1));
    assert!(
        run.err
            .starts_with("error: cannot write to standard output: "),
        "{}",
        run.err
    );
}

#[test]
fn no_colour_and_no_bar_reach_a_pipe() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let run = folder.run(&[
        "quantize",
        "in.safetensors",
        "-o",
        "out.gguf",
        "--to",
        "q8_0",
    ]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(!run.out.contains('\u{1b}'), "{}", run.out);
}
