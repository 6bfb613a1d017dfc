//! `--devices`: the files and figures of one processor, from several devices.

use serde_json::Value;

use super::folder::{Folder, lasting, noise};
use super::{is_emulated, on_device};

const MACHINE: &str = "devices=3";
/// More values than three devices need, and than a chunk of a file has.
const SHAPE: [usize; 2] = [33_000, 32];

fn inputs() -> Folder {
    let folder = Folder::new();
    let values = noise(1, SHAPE[0] * SHAPE[1]);
    folder.safetensors("rows.safetensors", &[("rows.weight", &SHAPE, &values)]);
    folder.safetensors("few.safetensors", &[("rows", &[3, 32], &noise(2, 96))]);
    folder
}

/// Returns how many kernels each device was given, by a file of metrics.
fn launched(text: &str) -> Vec<(String, u64)> {
    let lines = text.lines().filter(|line| {
        line.starts_with("tercet_device_queued_total{") && line.contains("what=\"kernel\"")
    });
    let of = |line: &str| {
        let (labels, count) = line.rsplit_once(' ').unwrap();
        let device = labels.split_once("device=\"").unwrap().1;
        let device = device.split('"').next().unwrap();
        (device.to_owned(), count.parse().unwrap())
    };
    lines.map(of).filter(|(_, count)| *count > 0).collect()
}

#[test]
fn several_devices_share_the_work_and_write_the_same_files() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    let flows: [(&[&str], &str); 5] = [
        (
            &[
                "kmeans",
                "rows.safetensors",
                "-k",
                "3",
                "--max-iter",
                "2",
                "--centroids",
                "c.npy",
            ],
            "c.npy",
        ),
        (
            &[
                "elbow",
                "rows.safetensors",
                "--k",
                "2..2",
                "--max-iter",
                "1",
            ],
            "",
        ),
        (
            &[
                "assign",
                "rows.safetensors",
                "--centroids",
                "few.safetensors",
                "--labels",
                "l.npy",
            ],
            "l.npy",
        ),
        (
            &[
                "search",
                "rows.safetensors",
                "few.safetensors",
                "-k",
                "4",
                "--indices",
                "i.npy",
            ],
            "i.npy",
        ),
        (
            &[
                "quantize",
                "rows.safetensors",
                "-o",
                "o.gguf",
                "--to",
                "tq2_0",
            ],
            "o.gguf",
        ),
    ];
    for (arguments, output) in flows {
        let mut runs: Vec<(Option<Vec<u8>>, Value)> = Vec::new();
        for choice in [
            ["--backend", "scalar"],
            ["--devices", "2"],
            ["--devices", "all"],
        ] {
            let metrics = format!("{}.prom", runs.len());
            let more = ["--json", "--metrics", &metrics];
            let force = if output.is_empty() {
                &[][..]
            } else {
                &["--force"]
            };
            let arguments = [arguments, &choice, force, &more].concat();
            let _ = std::fs::remove_file(folder.path(&metrics));
            let Some(run) = on_device(&folder, &arguments, MACHINE) else {
                return;
            };
            assert_eq!((run.code, &*run.err), (Some(0), ""), "{arguments:?}");
            let text = std::fs::read_to_string(folder.path(&metrics)).unwrap();
            let report: Value = serde_json::from_str(&run.out).unwrap();
            let (engine, devices) = match choice[1] {
                "scalar" => ("scalar", 0),
                "2" => ("cuda (2 devices)", 2),
                _ => ("cuda (3 devices)", 3),
            };
            assert_eq!(report["engine"], engine, "{arguments:?}");
            assert_eq!(launched(&text).len(), devices, "{arguments:?}: {text}");
            let file = (!output.is_empty()).then(|| std::fs::read(folder.path(output)).unwrap());
            runs.push((file, lasting(&report)));
        }
        for other in &runs[1..] {
            assert!(other.0 == runs[0].0, "{arguments:?}: files differ");
            assert_eq!(other.1, runs[0].1, "{arguments:?}");
        }
    }
}

#[test]
fn devices_that_are_not_there_or_not_for_this_are_one_line_and_nothing_written() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    let kmeans = ["kmeans", "rows.safetensors", "-k", "2", "--labels", "l.npy"];
    let before = folder.files();
    for (more, code, line) in [
        (
            &["--devices", "4"][..],
            1,
            "error: --devices: this machine has 3 CUDA devices, not 4\n",
        ),
        (
            &["--devices", "2", "--backend", "scalar"],
            2,
            "error: --devices and --backend scalar exclude each other; leave out one of them\n",
        ),
    ] {
        let Some(run) = on_device(&folder, &[&kmeans, more].concat(), MACHINE) else {
            return;
        };
        assert_eq!((run.code, &*run.err), (Some(code), line), "{more:?}");
        assert_eq!(folder.files(), before);
    }
    for count in ["0", "some"] {
        let run = folder.run(&[&kmeans[..], &["--devices", count]].concat());
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.err.contains("nor all"), "{}", run.err);
    }
}
