//! Who is said to work is who works: the engine that the metrics name for each command, beside whose kernels ran on which threads.

use std::collections::BTreeMap;

use serde_json::Value;
use tercet_host::simd::{Backend, taken};

use super::support::{Folder, noise};

/// A command, and whether it takes files tile by tile: all its kernels are then the engine's.
const COMMANDS: [(&str, bool); 16] = [
    ("quantize big.safetensors -o o.gguf --to tq2_0", true),
    (
        "quantize big.safetensors -o o.gguf --to auto --bits 3",
        true,
    ),
    ("quantize big.safetensors -o o.safetensors --to int8", true),
    (
        "quantize big.safetensors -o o.safetensors --to int8 --per block:64 --grid affine",
        true,
    ),
    (
        "quantize big.safetensors -o o.safetensors --to ternary --rule optimal",
        true,
    ),
    (
        "quantize big.safetensors -o o.safetensors --to bitnet-hf",
        true,
    ),
    (
        "quantize big.safetensors -o o.safetensors --to palette:3",
        true,
    ),
    ("dequantize blocks.gguf -o o.safetensors", true),
    ("dequantize codes.safetensors -o o.gguf --to f16", true),
    ("compare big.safetensors blocks.gguf", true),
    ("inspect codes.safetensors", true),
    ("calibrate big.safetensors --method mse", true),
    ("kmeans big.safetensors -k 3", false),
    (
        "assign big.safetensors --centroids big.safetensors:big.weight",
        false,
    ),
    ("elbow big.safetensors --k 2..3", false),
    ("search big.safetensors big.safetensors -k 2", false),
];

/// What a run has told and done.
#[derive(Debug)]
pub(crate) struct Worked {
    /// Engines that are said to have worked.
    pub(crate) named: Vec<String>,
    /// Kernels that a device was given.
    pub(crate) launched: u64,
    /// Kernels by their set, of the first thread and of others.
    kernels: BTreeMap<String, [u64; 2]>,
}

impl Worked {
    /// Of a command that is to run well.
    fn of(folder: &Folder, command: &str, more: &[&str]) -> Self {
        for old in ["o.gguf", "o.safetensors", "m.json"] {
            let _ = std::fs::remove_file(folder.path(old));
        }
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.extend(more);
        arguments.extend(["--metrics", "m.json"]);
        folder.ok(&arguments);
        let found = Self::read(folder, "m.json");
        assert_eq!(found.named.len(), 1, "{command} {more:?}: {found:?}");
        found
    }

    /// As a file of metrics has it.
    pub(crate) fn read(folder: &Folder, name: &str) -> Self {
        let text = std::fs::read_to_string(folder.path(name)).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let mut found = Self {
            named: Vec::new(),
            launched: 0,
            kernels: BTreeMap::new(),
        };
        for family in json["families"].as_array().unwrap() {
            for series in family["series"].as_array().unwrap() {
                let label = |name: &str| series["labels"][name].as_str().unwrap_or("").to_owned();
                match family["name"].as_str().unwrap() {
                    "tercet_call_seconds" => found.named.push(label("engine")),
                    "tercet_kernels_total" => {
                        let other = usize::from(label("thread") == "other");
                        let count = series["value"].as_u64().unwrap();
                        found.kernels.entry(label("set")).or_default()[other] += count;
                    }
                    "tercet_device_queued_total" if label("what") == "kernel" => {
                        found.launched += series["value"].as_u64().unwrap();
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// Kernels of a set by the first thread and by others, where no other set's ran.
    fn only(&self, set: &str) -> Option<[u64; 2]> {
        let mut others = self.kernels.keys().filter(|&name| name != set);
        let counts = self.kernels.get(set).copied().unwrap_or_default();
        others.next().is_none().then_some(counts)
    }
}

fn inputs(folder: &Folder, rows: usize) {
    let cols = 256;
    let values = noise(9, rows * cols);
    folder.safetensors("big.safetensors", &[("big.weight", &[rows, cols], &values)]);
    for (out, target) in [("blocks.gguf", "tq2_0"), ("codes.safetensors", "int8")] {
        let force = ["--to", target, "--force"];
        folder.ok(&[&["quantize", "big.safetensors", "-o", out][..], &force].concat());
    }
}

#[test]
fn the_engine_that_is_named_is_the_one_that_worked() {
    // Kernels are counted where debug assertions are.
    if taken().is_empty() {
        return;
    }
    let folder = Folder::new();
    // What one thread does as fast, and what it does not.
    for rows in [16, 9000] {
        inputs(&folder, rows);
        for (command, tiled) in COMMANDS {
            // Of rows by rows there are few.
            if rows > 1000 && !tiled && !command.starts_with("kmeans") {
                continue;
            }
            let best = Backend::best().isa().name();
            let mut runs: Vec<(Vec<&str>, &str)> = vec![
                (vec!["--threads", "3"], best),
                (vec!["--profile", "development"], best),
                (
                    vec!["--profile", "edge", "--edge-memory", "1000000000"],
                    "scalar",
                ),
            ];
            let sets: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
            for set in &sets {
                runs.push((vec!["--threads", "3", "--backend", set], set));
            }
            for (more, set) in runs {
                let worked = Worked::of(&folder, command, &more);
                let what = format!("{command} {more:?}, {rows} rows: {worked:?}");
                let [main, others] = worked.only(set).unwrap_or_else(|| panic!("{what}"));
                match worked.named[0].as_str() {
                    // Core's loops are not counted, and kernels of the set are those.
                    "scalar" => assert!(set == "scalar" && (others == 0 || !tiled), "{what}"),
                    "simd" => assert!(main > 0 && (others == 0 || !tiled), "{what}"),
                    // A tile or two are not worth a second thread.
                    "threads" => assert!(others > 0 || main > 0 && rows < 1000, "{what}"),
                    other => panic!("{other}: {what}"),
                }
                // One thread, whatever it is called.
                assert!(more[0] != "--profile" || others == 0, "{what}");
            }
        }
    }
}
