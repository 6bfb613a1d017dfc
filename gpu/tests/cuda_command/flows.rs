//! `--backend cuda`: the files and the figures of `--backend scalar` and of no choice at all.

use std::collections::BTreeSet;

use serde_json::Value;
use tercet_host::simd::Backend;

use super::folder::finish;
use super::folder::{Folder, forced, lasting, noise};
use super::on_device;
use super::support::emulator::lend;
use crate::worked::Worked;

/// What differs from run to run.
const PASSING: &str = "files";

/// Runs a command without a choice, by the reference engine's code and by the device; all it writes and prints must
/// be the same. Gives what the device's run printed, or `None` without a device.
fn thrice(folder: &Folder, arguments: &[&str], outputs: &[&str]) -> Option<Value> {
    let mut runs: Vec<(Vec<Vec<u8>>, Value)> = Vec::new();
    for choice in [&[][..], &["--backend", "scalar"], &["--backend", "cuda"]] {
        let force = match outputs {
            [] if !takes_force(arguments) => forced("", &["--force", "--json"]),
            _ => vec!["--force", "--json"],
        };
        let metrics = format!("{}.prom", runs.len());
        let _ = std::fs::remove_file(folder.path(&metrics));
        let more = ["--explain", "--metrics", &metrics];
        let arguments = [arguments, choice, &force, &more].concat();
        let run = on_device(folder, &arguments, "seed=5")?;
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        assert!(!run.err.contains("warning"), "{arguments:?}: {run:?}");
        let files = outputs
            .iter()
            .map(|name| std::fs::read(folder.path(name)).unwrap());
        let report: Value = serde_json::from_str(&run.out).unwrap();
        // Who is named is who worked.
        let worked = Worked::read(folder, &metrics, &run.err);
        worked.row(arguments[0], &choice.join(" "));
        let told: BTreeSet<String> = worked.named.iter().cloned().collect();
        assert_eq!(worked.chosen, told, "{arguments:?}: {run:?}");
        let named = worked.named.iter().any(|name| name == "cuda");
        assert_eq!(named, worked.launched > 0, "{arguments:?}: {worked:?}");
        let asked = choice.is_empty() || named == choice.contains(&"cuda");
        assert!(asked, "{arguments:?}: {worked:?}");
        runs.push((files.collect(), report));
    }
    let [auto, scalar, cuda] = &runs[..] else {
        unreachable!()
    };
    for (name, report) in [("scalar", &scalar.1), ("cuda", &cuda.1)] {
        assert_eq!(report["engine"], name, "{arguments:?}");
        assert!(report["engine_note"].is_null(), "{report}");
    }
    for other in [scalar, cuda] {
        assert!(other.0 == auto.0, "{arguments:?}: files differ");
        let (found, expected) = (lasting(&other.1), lasting(&auto.1));
        for (name, value) in expected.as_object().unwrap() {
            if name != PASSING {
                assert_eq!(found[name], *value, "{arguments:?}: {name}");
            }
        }
    }
    Some(cuda.1.clone())
}

fn rows(folder: &Folder, name: &str, shape: &[usize; 2], seed: u64) {
    let values = noise(seed, shape[0] * shape[1]);
    folder.safetensors(name, &[("rows", shape, &values)]);
}

#[test]
fn models_are_quantized_to_the_same_bytes() {
    let folder = Folder::new();
    // The long one has a group for the whole tensor that is looked at before it is coded. Blocks look at no more than
    // themselves.
    let (wide, narrow, long) = (noise(1, 6 * 512), noise(2, 6 * 64), noise(4, 4 * 20_480));
    let bias = noise(3, 8);
    let short: [(&str, &[usize], &[f32]); 3] = [
        ("bias", &[8], &bias),
        ("narrow.weight", &[6, 64], &narrow),
        ("wide.weight", &[6, 512], &wide),
    ];
    let whole = [&short[..], &[("long.weight", &[4, 20_480], &long)]].concat();
    folder.safetensors("short.safetensors", &short);
    folder.safetensors("in.safetensors", &whole);
    let blocks: [&[&str]; 6] = [
        &["--to", "tq1_0"],
        &["--to", "tq2_0", "--rule", "optimal", "--scale", "ls"],
        &["--to", "q2_0", "--rule", "absmean"],
        &["--to", "q4_0"],
        &["--to", "q8_0", "--exclude", "wide*"],
        &["--to", "auto", "--bits", "4"],
    ];
    let tensors: [&[&str]; 10] = [
        &["--to", "int8"],
        &["--to", "int8", "--per", "tensor", "--grid", "affine"],
        &["--to", "int8", "--per", "block:32", "--grid", "affine"],
        &["--to", "ternary"],
        &["--to", "ternary", "--rule", "twn", "--scale", "ls"],
        &["--to", "ternary", "--rule", "optimal"],
        &[
            "--to", "ternary", "--rule", "optimal", "--scale", "ls", "--per", "row",
        ],
        &["--to", "palette:4"],
        &["--to", "palette:2", "--per", "rows:4"],
        &["--to", "palette:3", "--per", "row"],
    ];
    let blocks = blocks.map(|options| ("short.safetensors", "out.gguf", options));
    let tensors = tensors.map(|options| ("in.safetensors", "out.safetensors", options));
    for (input, out, options) in blocks.into_iter().chain(tensors) {
        let arguments = [&["quantize", input, "-o", out], options].concat();
        let Some(report) = thrice(&folder, &arguments, &[out]) else {
            return;
        };
        for tensor in report["tensors"].as_array().unwrap() {
            let floats = ["f32", "f16"].contains(&tensor["to"].as_str().unwrap());
            let by = tensor["engine"].as_str();
            match (tensor["relative_error"].is_null(), floats) {
                (true, _) => assert_eq!(by, None, "{tensor}"),
                // Narrowing is the processor's.
                (false, true) => assert_ne!(by, Some("cuda"), "{tensor}"),
                (false, false) => assert_eq!(by, Some("cuda"), "{tensor}"),
            }
        }
    }
}

/// Blocks, codes in groups of every kind, and palettes, in tensors of several shapes; a tensor's floats are no
/// device's to read.
#[test]
fn models_are_restored_to_the_same_bytes_and_figures() {
    let folder = Folder::new();
    let (wide, narrow, long) = (noise(1, 6 * 512), noise(2, 6 * 64), noise(4, 7 * 20_483));
    let bias = noise(3, 8);
    let short: [(&str, &[usize], &[f32]); 3] = [
        ("bias", &[8], &bias),
        ("narrow.weight", &[6, 64], &narrow),
        ("wide.weight", &[6, 512], &wide),
    ];
    let odd: [(&str, &[usize], &[f32]); 2] = [("bias", &[8], &bias), ("long", &[7, 20_483], &long)];
    folder.safetensors("short.safetensors", &short);
    folder.safetensors("odd.safetensors", &odd);
    let blocks =
        ["tq1_0", "tq2_0", "q2_0", "q4_0", "q8_0"].map(|to| ["--to", to, "--exclude", "bias"]);
    let blocks = blocks.map(|options| ("short.safetensors", "q.gguf", options));
    let tensors = [
        ["--to", "int8", "--per", "tensor"],
        ["--to", "int8", "--grid", "affine"],
        ["--to", "ternary", "--per", "row"],
        ["--to", "palette:4", "--per", "rows:2"],
        ["--to", "palette:3", "--per", "row"],
        ["--to", "palette:8", "--per", "tensor"],
    ];
    let tensors = tensors.map(|options| ("odd.safetensors", "q.safetensors", options));
    for (input, quantized, options) in blocks.into_iter().chain(tensors) {
        let base = ["quantize", input, "-o", quantized, "--force"];
        folder.ok(&[&base[..], &options].concat());
        for to in ["f32", "f16", "bf16"] {
            let arguments = [
                "dequantize",
                quantized,
                "-o",
                "back.safetensors",
                "--to",
                to,
            ];
            let Some(report) = thrice(&folder, &arguments, &["back.safetensors"]) else {
                return;
            };
            for tensor in report["tensors"].as_array().unwrap() {
                let by = tensor["engine"].as_str();
                let copied = tensor["note"] == "not quantized";
                assert_eq!(by, (!copied).then_some("cuda"), "{tensor}");
            }
        }
        for arguments in [
            &["compare", input, quantized][..],
            &["compare", quantized, quantized],
            &["inspect", quantized],
        ] {
            thrice(&folder, arguments, &[]).unwrap();
        }
    }
}

/// A device has no step for packed codes and floats, nor for a conversion that codes nothing: a file of nothing else
/// is refused where the device is named, and the processor's where it is wished for; beside what the device restores,
/// the report says who did what.
#[test]
fn what_no_device_restores_is_refused_or_the_processors() {
    let folder = Folder::new();
    folder.quantized();
    let options = ["-o", "packed.safetensors", "--to", "bitnet-hf"];
    folder.ok(&[&["quantize", "in.safetensors"], &options[..]].concat());
    let before = folder.files();
    // A row that is shorter than a block becomes f16.
    let narrowed = ["quantize", "in.safetensors", "-o", "out.gguf"];
    let narrowed = [&narrowed[..], &["--to", "tq2_0", "--include", "bias"]].concat();
    let restores = "nothing that a device restores";
    let commands: [(&[&str], String); 5] = [
        (
            &narrowed,
            "in.safetensors has no tensor that this quantizes".to_owned(),
        ),
        (
            &["inspect", "in.safetensors"],
            format!("in.safetensors holds {restores}"),
        ),
        (
            &["inspect", "q.gguf", "--tensor", "bias"],
            format!("q.gguf holds {restores}"),
        ),
        (
            &["compare", "in.safetensors", "packed.safetensors"],
            format!("in.safetensors and packed.safetensors hold {restores}"),
        ),
        (
            &["dequantize", "packed.safetensors", "-o", "out.safetensors"],
            format!("packed.safetensors holds {restores}"),
        ),
    ];
    for (command, told) in commands {
        let arguments = [command, &["--backend", "cuda"]].concat();
        let Some(run) = on_device(&folder, &arguments, "") else {
            return;
        };
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
        let told = format!("error: --backend cuda: {told}; leave out");
        assert!(run.err.starts_with(&told), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1);
        assert_eq!(folder.files(), before);

        let mut wished = folder.command(&[command, &["--json"]].concat());
        wished.env("TERCET_BACKEND", "cuda");
        wished.env("TERCET_EMULATOR", "tell=0");
        assert!(lend(&mut wished));
        let run = finish(&mut wished);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let processor = Backend::default().to_string();
        match command[0] {
            "quantize" => {
                assert_eq!(report["engine"], *processor, "{report}");
                std::fs::remove_file(folder.path("out.gguf")).unwrap();
            }
            "dequantize" => {
                let named = |name: &str| {
                    (report["tensors"].as_array().unwrap().iter())
                        .any(|tensor| tensor["engine"] == name)
                };
                assert!(named(&processor) && !named("cuda"), "{report}");
                std::fs::remove_file(folder.path("out.safetensors")).unwrap();
            }
            _ => assert_eq!(report["engine"], *processor, "{report}"),
        }
    }
    // Both have a part.
    let arguments = [
        "compare",
        "packed.safetensors",
        "q.gguf",
        "--json",
        "--backend",
        "cuda",
    ];
    let run = on_device(&folder, &arguments, "").unwrap();
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["engine"], format!("cuda, {}", Backend::default()));
    assert!(report["engine_note"].is_null());
}

/// Whether a command has files that it may replace.
fn takes_force(arguments: &[&str]) -> bool {
    !["compare", "inspect"].contains(&arguments[0])
}

#[test]
fn bitnet_is_not_made_on_a_device() {
    let folder = Folder::new();
    folder.model("in.safetensors");
    let before = folder.files();
    let arguments = [
        "quantize",
        "in.safetensors",
        "-o",
        "o.safetensors",
        "--to",
        "bitnet-hf",
        "--backend",
        "cuda",
    ];
    let Some(run) = on_device(&folder, &arguments, "") else {
        return;
    };
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(
        run.err.starts_with("error: cuda cannot make bitnet-hf"),
        "{}",
        run.err
    );
    assert_eq!(folder.files(), before);
}

#[test]
fn points_are_clustered_in_the_same_way() {
    let folder = Folder::new();
    rows(&folder, "p.safetensors", &[300, 7], 1);
    rows(&folder, "few.safetensors", &[5, 7], 2);
    let options: [&[&str]; 4] = [
        &[],
        &["--spherical", "--n-init", "2"],
        &["--mini-batch", "64", "--max-iter", "3"],
        &["--init", "few.safetensors"],
    ];
    let outputs = ["--labels", "l.npy", "--centroids", "c.safetensors"];
    for options in options {
        let arguments = [&["kmeans", "p.safetensors", "-k", "5"], &outputs, options].concat();
        if thrice(&folder, &arguments, &["l.npy", "c.safetensors"]).is_none() {
            return;
        }
    }
    // The centroids that the device found, and more of them than there are points.
    for points in ["p.safetensors", "few.safetensors"] {
        for centroids in ["c.safetensors", "p.safetensors"] {
            let arguments = [
                "assign",
                points,
                "--centroids",
                centroids,
                "--labels",
                "a.npy",
            ];
            thrice(&folder, &arguments, &["a.npy"]).unwrap();
        }
    }
    thrice(&folder, &["elbow", "p.safetensors", "--k", "2..8:3"], &[]).unwrap();
}

#[test]
fn searches_find_the_same_rows() {
    let folder = Folder::new();
    rows(&folder, "b.safetensors", &[400, 20], 1);
    rows(&folder, "q.safetensors", &[9, 20], 2);
    let finds: [&[&str]; 3] = [
        &["-k", "4"],
        &["-k", "4", "--rerank", "20"],
        &["--threshold", "0.05"],
    ];
    // Every storage, every metric, every way to find, each with each of the other two.
    for (first, storage) in ["int8", "ternary", "f16", "f32"].into_iter().enumerate() {
        for (second, metric) in ["cosine", "dot", "l2"].into_iter().enumerate() {
            let find = finds[(first + second) % 3];
            let base = ["search", "b.safetensors", "q.safetensors"];
            let how = ["--storage", storage, "--metric", metric];
            if thrice(&folder, &[&base, &how[..], find].concat(), &[]).is_none() {
                return;
            }
        }
    }
}
