//! `--backend cuda` where the device is absent, has no room, or is lost on the way.

use serde_json::Value;

use super::folder::{Folder, Run, finish, forced, lasting, noise};
use super::support::emulator::lend;
use super::{is_emulated, on_device};

/// A command for each flow, and the files it writes, in a folder with its inputs.
const FLOWS: [(&[&str], &[&str]); 11] = [
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.gguf",
            "--to",
            "tq2_0",
        ],
        &["out.gguf"],
    ),
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.safetensors",
            "--to",
            "ternary",
            "--rule",
            "optimal",
        ],
        &["out.safetensors"],
    ),
    (
        &[
            "quantize",
            "in.safetensors",
            "-o",
            "out.safetensors",
            "--to",
            "palette:2",
            "--per",
            "row",
        ],
        &["out.safetensors"],
    ),
    (
        &[
            "kmeans",
            "rows.safetensors",
            "-k",
            "4",
            "--labels",
            "l.npy",
            "--centroids",
            "c.npy",
        ],
        &["l.npy", "c.npy"],
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
        &["l.npy"],
    ),
    (
        &[
            "search",
            "rows.safetensors",
            "few.safetensors",
            "-k",
            "3",
            "--indices",
            "i.npy",
            "--scores",
            "s.npy",
        ],
        &["i.npy", "s.npy"],
    ),
    (&["dequantize", "q.gguf", "-o", "back.gguf"], &["back.gguf"]),
    (
        &["dequantize", "codes.safetensors", "-o", "back.safetensors"],
        &["back.safetensors"],
    ),
    (
        &[
            "dequantize",
            "palette.safetensors",
            "-o",
            "back.safetensors",
            "--to",
            "f16",
        ],
        &["back.safetensors"],
    ),
    (&["compare", "in.safetensors", "palette.safetensors"], &[]),
    (&["inspect", "q.gguf"], &[]),
];

fn inputs() -> Folder {
    let folder = Folder::new();
    let (wide, long) = (noise(1, 6 * 512), noise(4, 2 * 40_960));
    let tensors: [(&str, &[usize], &[f32]); 2] =
        [("long", &[2, 40_960], &long), ("wide", &[6, 512], &wide)];
    folder.safetensors("in.safetensors", &tensors);
    folder.safetensors(
        "rows.safetensors",
        &[("rows", &[2000, 8], &noise(2, 16_000))],
    );
    folder.safetensors("few.safetensors", &[("rows", &[5, 8], &noise(3, 40))]);
    for (out, options) in [
        ("q.gguf", ["--to", "tq2_0", "--rule", "absmax"]),
        ("codes.safetensors", ["--to", "int8", "--grid", "affine"]),
        ("palette.safetensors", ["--to", "palette:3", "--per", "row"]),
    ] {
        folder.ok(&[&["quantize", "in.safetensors", "-o", out][..], &options].concat());
    }
    folder
}

#[test]
fn no_device_is_one_line_and_nothing_written() {
    if !is_emulated() {
        return;
    }
    for (switches, reason) in [
        ("devices=0", "no CUDA device 0: this machine has 0"),
        (
            "driver=11070",
            "the CUDA driver has version 11.7; version 11.8 or newer is needed",
        ),
        (
            "pools=0",
            "Tercet emulated device 0 cannot be used: it has no memory pools",
        ),
    ] {
        let folder = inputs();
        let before = folder.files();
        for (arguments, _) in FLOWS {
            let arguments = [arguments, &["--backend", "cuda"]].concat();
            let Some(run) = on_device(&folder, &arguments, switches) else {
                return;
            };
            assert_eq!(run.code, Some(1), "{run:?}");
            assert_eq!(
                (run.out, run.err),
                (String::new(), format!("error: --backend cuda: {reason}\n"))
            );
            assert_eq!(folder.files(), before);
        }
    }
}

#[test]
fn what_has_no_room_is_done_by_the_processor() {
    if !is_emulated() {
        return;
    }
    // No allocation at all; every one from the 4th or the 12th on: in the middle of the work.
    for switches in ["fail=alloc:1+", "fail=alloc:4+", "fail=alloc:12+"] {
        let folder = inputs();
        for (arguments, outputs) in FLOWS {
            let run = |more: &[&str]| {
                let force = forced(outputs.first().unwrap_or(&""), &["--json", "--force"]);
                let arguments = [arguments, &force, more].concat();
                let run = on_device(&folder, &arguments, switches)?;
                assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
                let files = outputs
                    .iter()
                    .map(|name| std::fs::read(folder.path(name)).unwrap());
                let report: Value = serde_json::from_str(&run.out).unwrap();
                Some((files.collect::<Vec<_>>(), report))
            };
            let Some((expected, plain)) = run(&["--backend", "scalar"]) else {
                return;
            };
            let (found, report) = run(&["--backend", "cuda"]).unwrap();
            assert!(found == expected, "{arguments:?} {switches}");
            if outputs.is_empty() {
                assert_eq!(lasting(&report), lasting(&plain), "{switches}");
            }
            if switches == "fail=alloc:1+" {
                let note = report["engine_note"].as_str().unwrap();
                assert!(
                    note.starts_with("cuda had no room for it: out of device memory: "),
                    "{note}"
                );
                if let (Some(tensors), [_]) = (report["tensors"].as_array(), outputs) {
                    assert_eq!(report["engine"], "cuda");
                    assert!(
                        tensors.iter().all(|tensor| tensor["engine"] != "cuda"),
                        "{report}"
                    );
                } else {
                    assert_ne!(report["engine"], "cuda");
                }
            }
        }
    }
}

#[test]
fn a_little_memory_is_enough() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    for (arguments, outputs) in FLOWS {
        let mut files = Vec::new();
        for choice in ["scalar", "cuda"] {
            let force = forced(outputs.first().unwrap_or(&""), &["--force"]);
            let arguments = [arguments, &force, &["--backend", choice]].concat();
            let Some(run) = on_device(&folder, &arguments, "memory=256K") else {
                return;
            };
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{arguments:?}");
            files.push(
                outputs
                    .iter()
                    .map(|name| std::fs::read(folder.path(name)).unwrap())
                    .collect::<Vec<_>>(),
            );
        }
        assert!(files[0] == files[1], "{arguments:?}");
    }
}

#[test]
fn a_lost_device_is_one_line_and_nothing_written() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    let before = folder.files();
    for (arguments, _) in FLOWS {
        let arguments = [arguments, &["--backend", "cuda"]].concat();
        let Some(run) = on_device(&folder, &arguments, "fail=lost:2") else {
            return;
        };
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(1), ""),
            "{arguments:?} {run:?}"
        );
        assert!(
            run.err
                .starts_with("error: cuda: the CUDA device was lost: CUDA_ERROR_"),
            "{}",
            run.err
        );
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        assert_eq!(folder.files(), before);
    }
}

/// `TERCET_BACKEND` is a wish: what the device does not finish, the processor does, with a word on why.
fn wished(folder: &Folder, arguments: &[&str], wish: &str, switches: &str) -> Option<Run> {
    let mut command = folder.command(arguments);
    command.env("TERCET_BACKEND", wish);
    command.env("TERCET_EMULATOR", format!("tell=0,{switches}"));
    lend(&mut command).then(|| finish(&mut command))
}

/// Every flow, with a device that is lost at its second call or fails at its first launch: the processor does it from
/// the start, the files are the same, and there is one warning.
#[test]
fn a_device_that_fails_in_mid_flow_is_one_warning_and_the_same_bits() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    for (arguments, outputs) in FLOWS {
        let force = forced(outputs.first().unwrap_or(&""), &["--force"]);
        let arguments = [arguments, &force].concat();
        let run = |wish: &str, switches: &str| {
            let run = wished(&folder, &arguments, wish, switches)?;
            assert_eq!(run.code, Some(0), "{arguments:?} {switches} {run:?}");
            let read = outputs
                .iter()
                .map(|name| std::fs::read(folder.path(name)).unwrap());
            Some((read.collect::<Vec<_>>(), run.err))
        };
        let Some((expected, quiet)) = run("scalar", "") else {
            return;
        };
        assert_eq!(quiet, "");
        let (whole, quiet) = run("cuda", "").unwrap();
        assert!(whole == expected, "{arguments:?}");
        assert_eq!(quiet, "");
        for switches in [
            "fail=lost:1",
            "fail=lost:2",
            "fail=launch:1",
            "fail=launch:2",
        ] {
            let (found, told) = run("cuda", switches).unwrap();
            assert!(found == expected, "{arguments:?} {switches}");
            let lines: Vec<_> = told.lines().collect();
            let [warning] = lines[..] else {
                panic!("{arguments:?} {switches}: {lines:?}");
            };
            assert!(
                warning.starts_with("warning: ") && warning.contains(": cuda failed, "),
                "{warning}"
            );
            let lost = warning.ends_with("; the GPU is not used from now on");
            assert_eq!(lost, switches.contains("lost"), "{warning}");
        }
    }
}
