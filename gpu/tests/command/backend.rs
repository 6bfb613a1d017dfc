//! `--backend`.

use std::fs;

use tercet_host::simd::{Backend, Isa};

use super::support::{Folder, finish, forced, lasting};

/// A command that takes it each, and the file it writes, if it writes any.
const COMMANDS: [(&[&str], &str); 10] = [
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "o.gguf",
            "--to",
            "tq2_0",
        ],
        "o.gguf",
    ),
    (
        &[
            "kmeans",
            "in.safetensors:wide.weight",
            "-k",
            "3",
            "--labels",
            "l.npy",
        ],
        "l.npy",
    ),
    (
        &[
            "assign",
            "in.safetensors:wide.weight",
            "--centroids",
            "in.safetensors:wide.weight",
            "--labels",
            "a.npy",
        ],
        "a.npy",
    ),
    (
        &[
            "elbow",
            "in.safetensors:wide.weight",
            "--k",
            "2..3",
            "--report",
            "e.svg",
        ],
        "e.svg",
    ),
    (
        &[
            "search",
            "in.safetensors:wide.weight",
            "in.safetensors:wide.weight",
            "-k",
            "2",
            "--scores",
            "s.npy",
        ],
        "s.npy",
    ),
    (
        &["dequantize", "q.gguf", "-o", "d.safetensors"],
        "d.safetensors",
    ),
    (
        &[
            "dequantize",
            "int8.safetensors",
            "-o",
            "h.gguf",
            "--to",
            "f16",
        ],
        "h.gguf",
    ),
    (&["compare", "in.safetensors", "palette.safetensors"], ""),
    (&["inspect", "q.gguf"], ""),
    (&["perplexity", "bitnet.gguf", "text"], ""),
];

/// Commands whose text says no more of the engine than why it did not do it all.
const QUIET: [&str; 4] = ["quantize", "dequantize", "compare", "inspect"];

fn inputs() -> Folder {
    let folder = Folder::new();
    folder.quantized();
    folder.languages();
    folder
}

#[test]
fn every_set_of_the_machine_writes_the_same_and_is_named() {
    let folder = inputs();
    for (command, output) in COMMANDS {
        let mut written = Vec::new();
        let sets: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
        for (choice, used) in [("auto", Backend::default().isa().name())]
            .into_iter()
            .chain(sets.iter().map(|&name| (name, name)))
        {
            let more = forced(output, &["--backend", choice, "--force", "--json"]);
            let report = folder.json(&[command, &more[..]].concat());
            assert_eq!(report["engine"], used, "{command:?}");
            assert!(report["engine_note"].is_null());
            written.push((folder.written(output), lasting(&report)));
        }
        assert!(
            written.iter().all(|found| *found == written[0]),
            "{command:?}"
        );
        let more = forced(output, &["--backend", "scalar", "--force"]);
        let text = folder.ok(&[command, &more].concat());
        assert!(
            QUIET.contains(&command[0]) || text.contains("scalar"),
            "{text}"
        );
    }
}

#[test]
fn a_choice_outdoes_the_variable() {
    let folder = inputs();
    let (command, _) = COMMANDS[1];
    for variable in ["scalar", "not a set"] {
        let name = Backend::best().isa().name();
        let mut run = folder.command(&[command, &["--json", "--backend", name]].concat());
        let run = finish(run.env("TERCET_BACKEND", variable));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{variable}");
        let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["engine"], name);
        fs::remove_file(folder.path("l.npy")).unwrap();
    }
}

#[test]
fn a_name_that_is_none_or_not_of_this_machine_is_wrong_usage() {
    let folder = inputs();
    let before = folder.files();
    for (command, _) in COMMANDS {
        let run = |name: &str| {
            let run = folder.run(&[command, &["--backend", name]].concat());
            assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{command:?}");
            run.err
        };
        let line = run("sse9");
        assert!(
            line.contains("sse9") && line.contains("cuda") && line.contains("avx2"),
            "{line}"
        );
        for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
            let line = run(isa.name());
            let expected =
                format!("error: {isa} does not run on this machine; this machine has scalar");
            assert!(line.starts_with(&expected), "{line}");
            assert_eq!(line.lines().count(), 1);
        }
    }
    assert_eq!(folder.files(), before);
}

/// Where this machine has no device, or the build no CUDA; `tests/cuda_command` has the others.
#[test]
fn cuda_without_a_device_is_a_failure_in_one_line() {
    let folder = inputs();
    if !folder.json(&["info", "--json"])["no_gpu"].is_string() {
        return;
    }
    for (command, _) in COMMANDS {
        let line = folder.fails(&[command, &["--backend", "cuda"]].concat());
        assert!(line.starts_with("error: --backend cuda: "), "{line}");
        let reason = if cfg!(feature = "cuda") {
            "CUDA d"
        } else {
            "this build has no CUDA"
        };
        assert!(line.contains(reason), "{line}");
        // Nor does an explanation suggest that there might be one.
        let run = folder.run(&[command, &["--explain"]].concat());
        let row = run.err.lines().find(|line| line.starts_with("cuda"));
        let words: Vec<&str> = row.unwrap().split_whitespace().collect();
        assert_eq!(words[1..7], ["-"; 6], "{}", run.err);
        assert!(run.err.contains("there is no device: "), "{}", run.err);
    }
}

#[test]
fn an_explanation_names_the_engines_and_why_one_was_chosen() {
    let folder = inputs();
    for (command, output) in COMMANDS {
        let run = |more: &[&str]| folder.run(&[command, &forced(output, more)].concat());
        let quiet = run(&["--json", "--force"]);
        let before = folder.written(output);
        let explained = run(&["--json", "--force", "--explain"]);
        let named = run(&["--force", "--explain", "--backend", "scalar"]);
        let run = explained;
        assert_eq!((run.code, quiet.code), (Some(0), Some(0)), "{run:?}");
        assert_eq!(quiet.err, "", "{command:?}");
        assert!(run.err.contains("chosen: "), "{}", run.err);
        for engine in ["scalar", "simd", "cuda"] {
            assert!(
                run.err.lines().any(|line| line.starts_with(engine)),
                "{}",
                run.err
            );
        }
        // At the end what came of it.
        let lines: Vec<_> = run.err.lines().collect();
        let taken = lines
            .iter()
            .rposition(|line| line.ends_with(" s predicted for the engine's part"));
        let taken = taken.unwrap_or_else(|| panic!("{}", run.err));
        assert!(
            lines[taken].contains(" s in all with files and floats; "),
            "{}",
            run.err
        );
        assert!(taken + 1 < lines.len());
        for line in &lines[taken + 1..] {
            assert!(line.starts_with("recommended: "), "{}", run.err);
        }
        // Standard output stays JSON, and the work is the same.
        assert!(serde_json::from_str::<serde_json::Value>(&run.out).is_ok());
        assert!(folder.written(output) == before);
        assert!(
            named.err.contains("another backend was asked for"),
            "{}",
            named.err
        );
    }
}

#[test]
fn the_variable_may_ask_for_what_auto_chooses_from() {
    let folder = inputs();
    let (command, output) = COMMANDS[2];
    let mut files = Vec::new();
    for variable in ["auto", "cuda", "scalar", ""] {
        let mut run = folder.command(&[command, &["--force"]].concat());
        let run = finish(run.env("TERCET_BACKEND", variable));
        // Without a device, `cuda` in the environment is a wish and no demand.
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{variable}");
        files.push(fs::read(folder.path(output)).unwrap());
    }
    assert!(files.iter().all(|file| *file == files[0]));
    let mut run = folder.command(command);
    let run = finish(
        run.env("TERCET_BACKEND", "scalar")
            .env("TERCET_VERBOSE", "2")
            .arg("--force"),
    );
    assert_eq!(run.code, Some(0));
    assert!(run.err.contains("tercet: assign of "), "{}", run.err);
}

/// Codes of both models in comparing, each tensor twice in looking; of what no device restores, all that is read.
#[test]
fn what_is_restored_is_counted() {
    let folder = inputs();
    let cases: [(&[&str], &str); 7] = [
        (
            &["dequantize", "int8.safetensors", "-o", "d.safetensors"],
            "dequantize: 4480 elements, 22456 bytes, 4480 steps, 14 items; ",
        ),
        // 16 blocks of 66 bytes, 12 of 18.
        (
            &["dequantize", "q.gguf", "-o", "d.gguf"],
            "decode: 4480 elements, 19192 bytes, ",
        ),
        (
            &["compare", "in.safetensors", "q.gguf"],
            "decode: 4480 elements, ",
        ),
        (
            &["compare", "int8.safetensors", "q.gguf"],
            "decode: 8960 elements, ",
        ),
        (&["inspect", "q.gguf"], "decode: 8960 elements, "),
        (
            &["inspect", "int8.safetensors", "--tensor", "narrow.weight"],
            "dequantize: 768 elements, 3888 bytes, 768 steps, 12 items; ",
        ),
        (&["inspect", "in.safetensors"], "decode: 8976 elements, "),
    ];
    for (command, counted) in cases {
        let run = folder.run(&[command, &["--explain"]].concat());
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.err.starts_with(counted), "{command:?}: {}", run.err);
        let no_step = run.err.contains("the device has no kernel for it");
        let missing = run.err.contains("there is no device");
        let floats = command == ["inspect", "in.safetensors"];
        assert_eq!(no_step, floats && !missing, "{}", run.err);
    }
    // Without work there is nothing to explain.
    let none = folder.run(&["inspect", "none.gguf", "--explain"]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.err.starts_with("error: none.gguf: ") && none.err.lines().count() == 1,
        "{}",
        none.err
    );
}
