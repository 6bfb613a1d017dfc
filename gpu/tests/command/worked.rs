//! Who is said to work is who works: for each command the engine that `--explain` chose and the one that the metrics
//! name, beside whose kernels ran on which threads. With `--nocapture` the tests print it as a table.

use std::collections::{BTreeMap, BTreeSet};

use tercet_host::simd::{Backend, taken};

use super::support::{Folder, noise};

/// A command, and whether it takes files tile by tile: all its kernels are then the engine's.
const COMMANDS: [(&str, bool); 21] = [
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
    (
        "network build big.safetensors --layer big --to int8 --calibrate big.safetensors -o o.gguf",
        false,
    ),
    ("network run net.gguf big.safetensors", false),
    ("generate bitnet.gguf -p Once -n 3", false),
    ("chat chat.gguf -p Once -n 3", false),
    ("perplexity bitnet.gguf text --context 64", false),
];

/// The command that is made of others' flows.
const DEMO: &str = "demo --force --out demo";

/// What a run has told and done.
#[derive(Debug)]
pub(crate) struct Worked {
    /// Engines that an explanation says were chosen.
    pub(crate) chosen: BTreeSet<String>,
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
        for old in ["o.gguf", "o.safetensors", "m.prom"] {
            let _ = std::fs::remove_file(folder.path(old));
        }
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.extend(more);
        arguments.extend(["--explain", "--metrics", "m.prom"]);
        let run = folder.run(&arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        let found = Self::read(folder, "m.prom", &run.err);
        let one = command == DEMO || found.named.len() == 1;
        assert!(one, "{command} {more:?}: {found:?}");
        let told: BTreeSet<String> = found.named.iter().cloned().collect();
        assert_eq!(found.chosen, told, "{command} {more:?}");
        found
    }

    /// As a file of metrics has it, and an explanation.
    pub(crate) fn read(folder: &Folder, name: &str, explained: &str) -> Self {
        let text = std::fs::read_to_string(folder.path(name)).unwrap();
        let chosen = (explained.lines())
            .filter(|line| line.contains("  chosen: "))
            .filter_map(|line| line.split_whitespace().next());
        let mut found = Self {
            chosen: chosen.map(str::to_owned).collect(),
            named: Vec::new(),
            launched: 0,
            kernels: BTreeMap::new(),
        };
        for line in text.lines().filter(|line| line.starts_with("tercet_")) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (family, labels) = series.split_once('{').unwrap_or((series, ""));
            let label = |name: &str| {
                let rest = labels
                    .split_once(&format!("{name}=\""))
                    .unwrap_or_default()
                    .1;
                rest.split('"').next().unwrap().to_owned()
            };
            let count = || value.parse::<u64>().unwrap();
            match family {
                "tercet_call_seconds_count" => found.named.push(label("engine")),
                "tercet_kernels_total" => {
                    let other = usize::from(label("thread") == "other");
                    found.kernels.entry(label("set")).or_default()[other] += count();
                }
                "tercet_device_queued_total" if label("what") == "kernel" => {
                    found.launched += count();
                }
                _ => {}
            }
        }
        found
    }

    /// A row of the table: command, choice, chosen, told, kernels that ran by the first thread and by others, kernels
    /// of the device.
    pub(crate) fn row(&self, command: &str, choice: &str) {
        let list = |names: &mut dyn Iterator<Item = &String>| {
            let names: BTreeSet<&str> = names.map(String::as_str).collect();
            names.into_iter().collect::<Vec<_>>().join(", ")
        };
        let (chosen, told) = (list(&mut self.chosen.iter()), list(&mut self.named.iter()));
        let kernels =
            (self.kernels.iter()).map(|(set, [main, other])| format!("{set} {main} + {other}"));
        let kernels = kernels.collect::<Vec<_>>().join(", ");
        println!(
            "| {command} | {choice} | {chosen} | {told} | {kernels} | {} |",
            self.launched
        );
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
    let layer = ["--layer", "big", "--to", "int8"];
    let out = [
        "--calibrate",
        "big.safetensors",
        "-o",
        "net.gguf",
        "--force",
    ];
    folder.ok(&[&["network", "build", "big.safetensors"][..], &layer, &out].concat());
    if !folder.path("bitnet.gguf").exists() {
        folder.languages();
    }
}

/// Ways to name engines, and the set whose kernels are then to run.
fn choices() -> Vec<(Vec<&'static str>, &'static str)> {
    let best = Backend::best().isa().name();
    let memory = ["--profile", "edge", "--edge-memory", "1000000000"];
    let mut choices = vec![
        (vec!["--threads", "3"], best),
        (vec!["--profile", "development"], best),
        (memory.to_vec(), "scalar"),
    ];
    for set in Backend::all().map(|backend| backend.isa().name()) {
        choices.push((vec!["--threads", "3", "--backend", set], set));
    }
    choices
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
            for (more, set) in choices() {
                let worked = Worked::of(&folder, command, &more);
                worked.row(command, &format!("{}, {rows} rows", more.join(" ")));
                let what = format!("{command} {more:?}, {rows} rows: {worked:?}");
                let [main, others] = worked.only(set).unwrap_or_else(|| panic!("{what}"));
                match worked.named[0].as_str() {
                    // Core's loops are not counted, and kernels of the set are those.
                    "scalar" if set == "scalar" => assert!(others == 0 || !tiled, "{what}"),
                    "scalar" => assert!(main + others == 0 && !tiled, "{what}"),
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

#[test]
fn the_demo_s_flows_run_on_what_was_asked_for() {
    if taken().is_empty() {
        return;
    }
    let folder = Folder::new();
    for (more, set) in choices() {
        let worked = Worked::of(&folder, DEMO, &more);
        worked.row(DEMO, &more.join(" "));
        let [main, others] = (worked.only(set)).unwrap_or_else(|| panic!("{more:?}: {worked:?}"));
        assert!(main + others > 0, "{more:?}: {worked:?}");
        assert!(
            more[0] != "--profile" || others == 0,
            "{more:?}: {worked:?}"
        );
    }
}

/// What is added later is held to the same.
#[test]
fn every_command_that_engines_do_is_among_these() {
    let folder = Folder::new();
    let below = |command: &[&str]| -> Vec<String> {
        let help = folder.ok(&[command, &["--help"]].concat());
        // `tercet` lists its commands in groups.
        let heading = if command.is_empty() {
            "<COMMAND>\n"
        } else {
            "Commands:\n"
        };
        let named = help.split(heading).nth(1).unwrap_or("");
        let lines = named.lines().take_while(|line| *line != "Options:");
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        names
            .filter(|&name| name != "help")
            .map(str::to_owned)
            .collect()
    };
    let mut found = 0;
    for name in below(&[]) {
        let subcommands = below(&[&name]);
        let commands = match subcommands.is_empty() {
            true => vec![name],
            false => subcommands
                .iter()
                .map(|it| format!("{name} {it}"))
                .collect(),
        };
        for command in commands {
            let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
            if !folder.ok(&words).contains("--explain") {
                continue;
            }
            found += 1;
            let begins = |other: &str| other.starts_with(&format!("{command} "));
            let mut known = COMMANDS.iter().map(|(it, _)| *it).chain([DEMO]);
            assert!(known.any(begins), "{command}: not among the commands");
        }
    }
    assert_eq!(found, 15);
}
