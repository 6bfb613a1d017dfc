//! `--profile edge`: whole flows as a microcontroller would do them.

use serde_json::Value;

use super::support::{Folder, Run, finish, forced, lasting, noise};

/// The floats of a block of 256, and the sums of two comparisons: in each four of 64 lanes, a sum and a count, and
/// the largest error with its index.
const BLOCK: usize = 256 * 4;
const SUMS: usize = 2 * (4 * (64 + 2) + 2) * 8;

/// A command that takes the profile each, the file it writes, if it writes any, and the bytes that it takes on the
/// inputs below.
const FLOWS: [(&[&str], &str, usize); 17] = [
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
        0,
    ),
    // 128 bins of 16 bytes.
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "o.safetensors",
            "--to",
            "ternary",
            "--rule",
            "optimal",
        ],
        "o.safetensors",
        128 * 16,
    ),
    // Six formats of two tensors, 24 bytes each, and the choice.
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "o.gguf",
            "--to",
            "auto",
            "--bits",
            "5",
        ],
        "o.gguf",
        2 * (6 * 24 + 4),
    ),
    // 255 codes, 4 entries, 252 cuts: 2 · 256 + 2 · 252 + ⌈3 · 252 / 8⌉ words of 8 bytes.
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "o.safetensors",
            "--to",
            "palette:2",
        ],
        "o.safetensors",
        (2 * 256 + 2 * 252 + 95) * 8,
    ),
    // Codes, labels and distances of 90 points; 3 clusters: centroids, sums, norms and counts.
    (
        &["kmeans", "rows.safetensors", "-k", "3", "--labels", "l.npy"],
        "l.npy",
        90 * 6 + 90 * 8 + 3 * 6 * 9 + 3 * 12,
    ),
    // And the best centroids of two restarts.
    (
        &[
            "kmeans",
            "rows.safetensors",
            "-k",
            "3",
            "--n-init",
            "2",
            "--centroids",
            "c.npy",
        ],
        "c.npy",
        90 * 6 + 90 * 8 + 3 * 6 * 10 + 3 * 12,
    ),
    (
        &[
            "assign",
            "rows.safetensors",
            "--centroids",
            "few.safetensors",
            "--labels",
            "a.npy",
        ],
        "a.npy",
        4 * 6 + 6 + 8,
    ),
    // The codes and the floats of a query, 5 hits of each: 24 and 16 bytes, since cosines hold 64 bits.
    (
        &[
            "search",
            "rows.safetensors",
            "few.safetensors",
            "-k",
            "5",
            "--scores",
            "s.npy",
        ],
        "s.npy",
        6 + 4 * 6 + 5 * 24 + 5 * 16,
    ),
    // Candidates of 8 bytes, at most as many as there are rows, scored again, and the truth that recall compares with.
    (
        &[
            "search",
            "rows.safetensors",
            "few.safetensors",
            "-k",
            "5",
            "--storage",
            "ternary",
            "--metric",
            "l2",
            "--rerank",
            "100",
            "--scores",
            "s.npy",
        ],
        "s.npy",
        6 + 4 * 6 + 90 * 8 + 2 * 5 * 8,
    ),
    // Queries of rows of f16 are f32 too.
    (
        &[
            "search",
            "rows.safetensors",
            "few.safetensors",
            "-k",
            "5",
            "--storage",
            "f16",
            "--metric",
            "dot",
            "--no-recall",
            "--scores",
            "s.npy",
        ],
        "s.npy",
        4 * 6 + 5 * 8,
    ),
    // The largest k takes the most.
    (
        &[
            "elbow",
            "rows.safetensors",
            "--k",
            "2..4",
            "--report",
            "e.svg",
        ],
        "e.svg",
        90 * 6 + 90 * 8 + 4 * 6 * 9 + 4 * 12,
    ),
    (
        &["dequantize", "q.gguf", "-o", "d.safetensors"],
        "d.safetensors",
        BLOCK,
    ),
    // Codes one by one.
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
        4,
    ),
    (&["compare", "in.safetensors", "q.gguf"], "", SUMS + BLOCK),
    (
        &["compare", "palette.safetensors", "q.gguf"],
        "",
        SUMS + 4 + BLOCK,
    ),
    // 32 bars.
    (&["inspect", "q.gguf"], "", BLOCK + 32 * 8),
    // A tensor of blocks of 32.
    (
        &["inspect", "q.gguf", "--tensor", "narrow.weight"],
        "",
        32 * 4 + 32 * 8,
    ),
];

fn inputs() -> Folder {
    let folder = Folder::new();
    folder.quantized();
    folder.safetensors("rows.safetensors", &[("rows", &[90, 6], &noise(5, 540))]);
    folder.safetensors("few.safetensors", &[("rows", &[4, 6], &noise(6, 24))]);
    folder
}

fn run(folder: &Folder, command: &[&str], more: &[&str]) -> Run {
    finish(&mut folder.command(&[command, more].concat()))
}

#[test]
fn flows_give_the_same_bits_in_just_the_memory_that_they_take() {
    let folder = inputs();
    for (command, output, bytes) in FLOWS {
        let written = |more: &[&str]| {
            let more = forced(output, &[&["--force", "--json"], more].concat());
            let run = run(&folder, command, &more);
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{command:?}");
            let report: Value = serde_json::from_str(&run.out).unwrap();
            (folder.written(output), report)
        };
        let (expected, before) = written(&[]);
        let exactly = bytes.to_string();
        for memory in [&[][..], &["--edge-memory", &exactly]] {
            let (found, report) = written(&[&["--profile", "edge"], memory].concat());
            assert!(found == expected, "{command:?}");
            assert_eq!(report["engine"], "scalar", "{report}");
            if output.is_empty() {
                assert_eq!(lasting(&report), lasting(&before));
            }
        }
        if !output.is_empty() {
            std::fs::remove_file(folder.path(output)).unwrap();
        }
        if let Some(less) = bytes.checked_sub(1) {
            let less = less.to_string();
            let line =
                folder.fails(&[command, &["--profile", "edge", "--edge-memory", &less]].concat());
            let told = format!(
                " needs {bytes} bytes of memory and has {less}; --edge-memory sets how many it has\n"
            );
            assert!(
                line.starts_with("error: --profile edge: ") && line.ends_with(&told),
                "{line}"
            );
        }
    }
}

#[test]
fn sixteen_kibibytes_are_the_limit_unless_another_is_named() {
    let folder = Folder::new();
    let rows = noise(7, 2000 * 8);
    folder.safetensors("rows.safetensors", &[("rows", &[2000, 8], &rows)]);
    let command = ["kmeans", "rows.safetensors", "-k", "4"];
    let needed = 2000 * 8 + 2000 * 8 + 4 * 8 * 9 + 4 * 12;
    let line = folder.fails(&[&command[..], &["--profile", "edge"]].concat());
    let told = format!("--profile edge: kmeans needs {needed} bytes of memory and has 16384");
    assert!(line.contains(&told), "{line}");

    // The environment asks as the options do, and options outdo it.
    let ask = |profile: &str, memory: &str, more: &[&str]| {
        let mut asked = folder.command(&[&command[..], more].concat());
        finish(
            asked
                .env("TERCET_PROFILE", profile)
                .env("TERCET_EDGE_MEMORY", memory),
        )
    };
    assert!(ask("edge", "", &[]).err.contains(&told));
    let enough = needed.to_string();
    assert_eq!(ask("Edge", &enough, &[]).code, Some(0));
    assert_eq!(ask("edge", "1", &["--edge-memory", &enough]).code, Some(0));
    assert_eq!(ask("edge", "1", &["--profile", "auto"]).code, Some(0));
    for (profile, memory, more, told) in [
        (
            "tiny",
            "",
            &[][..],
            "TERCET_PROFILE: tiny is not a profile; choose auto, ",
        ),
        (
            "edge",
            "16k",
            &[],
            "TERCET_EDGE_MEMORY: 16k is not a number of bytes",
        ),
        (
            "",
            "",
            &["--edge-memory", "1"],
            "--edge-memory needs --profile edge, but the profile is auto",
        ),
        (
            "edge",
            "",
            &["--backend", "cuda"],
            "--backend cuda cannot be used with the profile edge",
        ),
        (
            "",
            "",
            &["--backend", "cuda", "--profile", "cpu"],
            "--backend cuda cannot be used with the profile cpu",
        ),
        (
            "edge",
            "",
            &["--threads", "2"],
            "the profile edge uses one thread; leave out --threads",
        ),
        (
            "development",
            "",
            &["--threads", "2"],
            "the profile development uses one thread; leave out --threads",
        ),
    ] {
        let run = ask(profile, memory, more);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
        assert!(
            run.err.starts_with(&format!("error: {told}")),
            "{}",
            run.err
        );
    }
}

/// Methods that look at the extremes alone take no memory, the others the histogram that their figures come from.
#[test]
fn calibration_takes_the_histogram_that_it_looks_at() {
    let folder = Folder::new();
    folder.npy("a.npy", &noise(11, 3000));
    const BUCKETS: usize = 8 << 16;
    for (method, bytes) in [
        ("absmax", 0),
        ("minmax", 0),
        ("percentile", BUCKETS),
        ("mse", BUCKETS),
        ("entropy", BUCKETS),
    ] {
        let command = ["calibrate", "a.npy", "--method", method];
        let mut expected = folder.json(&[&command[..], &["--json"]].concat());
        let exactly = bytes.to_string();
        let edge = ["--profile", "edge", "--edge-memory", &exactly];
        let found = folder.json(&[&command[..], &edge, &["--json"]].concat());
        assert_eq!(found["engine"], "scalar");
        expected["engine"] = found["engine"].clone();
        assert_eq!(found, expected, "{method}");
        let by_default = run(&folder, &command, &["--profile", "edge"]);
        if bytes == 0 {
            assert_eq!(by_default.code, Some(0), "{by_default:?}");
            continue;
        }
        let told = |has: usize| {
            format!(
                "error: --profile edge: histogram needs {bytes} bytes of memory and has {has}; --edge-memory sets how many it has\n"
            )
        };
        assert_eq!((by_default.code, by_default.err), (Some(1), told(16384)));
        let less = (bytes - 1).to_string();
        let edge = ["--profile", "edge", "--edge-memory", &less];
        let line = folder.fails(&[&command[..], &edge].concat());
        assert_eq!(line, told(bytes - 1));
    }
}

/// A trace has a row for each thread that works.
#[test]
fn no_thread_but_the_first_works() {
    let folder = Folder::new();
    let rows = noise(8, 20_000 * 8);
    folder.safetensors("rows.safetensors", &[("rows", &[20_000, 8], &rows)]);
    folder.safetensors("few.safetensors", &[("rows", &[500, 8], &rows[..4000])]);
    folder.safetensors(
        "in.safetensors",
        &[("long", &[40, 20_000], &noise(9, 800_000))],
    );
    // More than two threads' chunks.
    folder.npy("long.npy", &noise(10, 5 << 19));
    folder.ok(&["quantize", "in.safetensors", "-o", "q.gguf", "--to", "q8_0"]);
    let commands: [&[&str]; 8] = [
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "o.safetensors",
            "--to",
            "ternary",
        ],
        &["kmeans", "rows.safetensors", "-k", "4"],
        &[
            "assign",
            "rows.safetensors",
            "--centroids",
            "few.safetensors",
        ],
        &["search", "rows.safetensors", "few.safetensors", "-k", "5"],
        &["calibrate", "long.npy", "--method", "mse"],
        &["dequantize", "q.gguf", "-o", "d.safetensors"],
        &["compare", "in.safetensors", "q.gguf"],
        &["inspect", "q.gguf"],
    ];
    for (at, command) in commands.into_iter().enumerate() {
        let rows = |name: String, more: &[&str]| {
            let arguments = [&["--trace", &name, "--force"][..], more].concat();
            let arguments: Vec<_> = (arguments.into_iter())
                .filter(|word| *word != "--force" || command[0].ends_with("quantize"))
                .collect();
            let run = run(&folder, command, &arguments);
            assert_eq!(run.code, Some(0), "{run:?}");
            let text = std::fs::read_to_string(folder.path(&name)).unwrap();
            let trace: Value = serde_json::from_str(&text).unwrap();
            let events = trace["traceEvents"].as_array().unwrap();
            let threads = events.iter().filter(|event| event["name"] == "thread_name");
            threads
                .map(|event| event["args"]["name"].clone())
                .collect::<Vec<_>>()
        };
        let edge = ["--profile", "edge", "--edge-memory", "1000000"];
        assert_eq!(
            rows(format!("edge{at}.json"), &edge),
            ["main"],
            "{command:?}"
        );
        let many = rows(
            format!("many{at}.json"),
            &["--threads", "3", "--profile", "cpu"],
        );
        assert!(many.len() > 1, "{command:?}: {many:?}");
    }
}
