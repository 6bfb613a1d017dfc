//! `tercet calibrate --backend cuda`: the figures of every other engine.

use half::{bf16, f16};
use serde_json::Value;

use super::folder::{Folder, noise};
use super::{is_emulated, on_device, worked};

const METHODS: [&str; 5] = ["absmax", "minmax", "percentile", "mse", "entropy"];

/// Recordings of every kind: an array, halves of both kinds, and doubles, which go as f32.
fn recordings() -> Folder {
    let folder = Folder::new();
    folder.npy("a.npy", &noise(1, 3001));
    let values = noise(2, 5000);
    let halves: Vec<u8> = (values.iter())
        .flat_map(|&x| f16::from_f32(x).to_le_bytes())
        .collect();
    let brains: Vec<u8> = (values.iter())
        .flat_map(|&x| bf16::from_f32(3.0 * x).to_le_bytes())
        .collect();
    let doubles: Vec<u8> = (values.iter())
        .flat_map(|&x| f64::from(-2.0 * x).to_le_bytes())
        .collect();
    let tensors = [
        ("brains", "BF16", brains),
        ("doubles", "F64", doubles),
        ("halves", "F16", halves),
    ];
    let (mut header, mut data) = (String::new(), Vec::new());
    for (name, dtype, bytes) in tensors {
        let (start, end) = (data.len(), data.len() + bytes.len());
        let comma = if header.is_empty() { "" } else { "," };
        header += &format!(
            r#"{comma}"{name}":{{"dtype":"{dtype}","shape":[5000],"data_offsets":[{start},{end}]}}"#
        );
        data.extend(bytes);
    }
    let header = format!("{{{header}}}");
    let header = format!("{header:width$}", width = header.len().next_multiple_of(8));
    let file = [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &data,
    ];
    std::fs::write(folder.path("b.safetensors"), file.concat()).unwrap();
    folder
}

/// The report, and its engine and the note taken out of it.
fn report(folder: &Folder, more: &[&str], switches: &str) -> Option<(Value, Value, Value)> {
    let arguments = [&["calibrate", "a.npy", "b.safetensors", "--json"][..], more];
    let arguments = arguments.concat();
    // What a device has no room for, the processor does in its place.
    let run = match switches {
        "" | "seed=5" => worked(folder, &arguments, switches)?,
        _ => on_device(folder, &arguments, switches)?,
    };
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{more:?}");
    let mut found: Value = serde_json::from_str(&run.out).unwrap();
    let object = found.as_object_mut().unwrap();
    let engine = object.remove("engine").unwrap();
    let note = object.remove("engine_note").unwrap();
    Some((found, engine, note))
}

#[test]
fn figures_are_those_of_the_processor() {
    let folder = recordings();
    for method in METHODS {
        for grid in ["symmetric", "affine"] {
            let with = |backend: &str, switches: &str| {
                let options = ["--method", method, "--grid", grid, "--backend", backend];
                report(&folder, &options, switches)
            };
            let Some((found, engine, note)) = with("cuda", "seed=5") else {
                return;
            };
            assert_eq!((engine, note), ("cuda".into(), Value::Null));
            let (expected, engine, _) = with("scalar", "").unwrap();
            assert_eq!(engine, "scalar");
            assert_eq!(found, expected, "{method} {grid}");
            assert_eq!(found["count"], 18_001);
            let (auto, ..) = with("auto", "").unwrap();
            assert_eq!(auto, expected, "{method} {grid}");
        }
    }
}

#[test]
fn what_has_no_room_is_counted_by_the_processor() {
    if !is_emulated() {
        return;
    }
    let folder = recordings();
    let (expected, ..) = report(&folder, &["--method", "mse", "--backend", "scalar"], "").unwrap();
    for (switches, whole) in [
        ("fail=alloc:1+", true),
        ("fail=alloc:5", false),
        ("memory=128K", true),
    ] {
        let options = ["--method", "mse", "--backend", "cuda"];
        let (found, engine, note) = report(&folder, &options, switches).unwrap();
        assert_eq!(found, expected, "{switches}");
        assert_eq!(engine, "cuda");
        if whole || !note.is_null() {
            let note = note.as_str().unwrap();
            assert!(note.starts_with("cuda had no room for it: "), "{note}");
        }
    }
}

#[test]
fn failures_are_one_line() {
    let folder = recordings();
    folder.npy("bad.npy", &[noise(3, 4000), vec![f32::NAN, 1.0]].concat());
    let command = ["calibrate", "bad.npy", "--method", "mse", "--backend"];
    let Some(refused) = on_device(&folder, &[&command[..], &["cuda"]].concat(), "") else {
        return;
    };
    let scalar = on_device(&folder, &[&command[..], &["scalar"]].concat(), "").unwrap();
    assert!(refused.err.contains("value 4000 "), "{refused:?}");
    assert_eq!((refused.code, refused.err), (scalar.code, scalar.err));
    if !is_emulated() {
        return;
    }
    let options = ["calibrate", "a.npy", "--method", "mse", "--backend", "cuda"];
    let failed = on_device(&folder, &options, "fail=launch:1:719").unwrap();
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), ""));
    assert!(
        failed.err.starts_with("error: cuda: ") && failed.err.lines().count() == 1,
        "{}",
        failed.err
    );
}
