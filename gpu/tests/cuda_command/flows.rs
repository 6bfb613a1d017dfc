//! `--backend cuda`: the files and the figures of `--backend scalar` and of no choice at all.

use serde_json::Value;

use super::folder::{Folder, noise};
use super::on_device;

/// What differs from run to run.
const PASSING: [&str; 5] = [
    "seconds",
    "megabytes_per_second",
    "engine",
    "files",
    "tensors",
];

/// Runs a command without a choice, by the reference engine's code and by the device; all it writes and prints must be the same.
/// Gives what the device's run printed, or `None` without a device.
fn thrice(folder: &Folder, arguments: &[&str], outputs: &[&str]) -> Option<Value> {
    let mut runs: Vec<(Vec<Vec<u8>>, Value)> = Vec::new();
    for choice in [&[][..], &["--backend", "scalar"], &["--backend", "cuda"]] {
        let arguments = [arguments, choice, &["--force", "--json"]].concat();
        let run = on_device(folder, &arguments, "seed=5")?;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
        let files = outputs
            .iter()
            .map(|name| std::fs::read(folder.path(name)).unwrap());
        runs.push((files.collect(), serde_json::from_str(&run.out).unwrap()));
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
        for (name, value) in auto.1.as_object().unwrap() {
            if !PASSING.contains(&name.as_str()) {
                assert_eq!(other.1[name], *value, "{arguments:?}: {name}");
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
    // The long one has a group for the whole tensor that is looked at before it is coded. Blocks look at no more than themselves.
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
    let blocks: [&[&str]; 7] = [
        &["--to", "tq1_0"],
        &["--to", "tq2_0", "--rule", "optimal", "--scale", "ls"],
        &["--to", "q2_0", "--rule", "absmean"],
        &["--to", "q4_0"],
        &["--to", "q8_0", "--exclude", "wide*"],
        &["--to", "auto", "--bits", "4"],
        &["--to", "tq2_0", "--include", "bias"],
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
        run.err.starts_with("error: cuda does not make bitnet-hf"),
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
