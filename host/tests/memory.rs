//! Memory stays bounded whatever the size of a tensor: buffers below 64 MiB, and the mapped part of the input below 128 MiB.
//!
//! The only test of its binary, so that nothing else counts. Linux tells anonymous memory apart from mapped files.
#![cfg(target_os = "linux")]

mod files;

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use files::Folder;
use tercet_core::palette::Width;
use tercet_core::quant::Rule;
use tercet_host::convert::{Per, Target};
use tercet_host::{Model, QuantizeOptions, quantize};

const MIB: u64 = 1 << 20;
/// A tensor of 256 MiB as `f32`.
const ROWS: u64 = 16_384;
const COLUMNS: u64 = 4096;

/// Bytes that the process holds now: of anonymous memory, and of mapped files.
fn held() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    ["RssAnon:", "RssFile:"].map(|field| {
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let words = line.expect("Linux 4.5 has it").split_whitespace().next();
        let kib: u64 = words.expect("a number").parse().expect("a number");
        kib * 1024
    })
}

/// The most of either seen while `work` runs, looked at every millisecond.
fn peak(work: impl FnOnce()) -> [u64; 2] {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = [0; 2];
            while !done.load(Ordering::Relaxed) {
                let now = held();
                peak = [0, 1].map(|kind| peak[kind].max(now[kind]));
                std::thread::sleep(Duration::from_millis(1));
            }
            peak
        });
        work();
        done.store(true, Ordering::Relaxed);
        watch.join().expect("the watch does not panic")
    })
}

#[test]
fn memory_does_not_grow_with_a_tensor() {
    let folder = Folder::new();
    let path = folder.file("sparse.safetensors");
    let bytes = ROWS * COLUMNS * 4;
    let header = format!(
        r#"{{"a":{{"dtype":"F32","shape":[{ROWS},{COLUMNS}],"data_offsets":[0,{bytes}]}}}}"#
    );
    let mut file = File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes())
        .unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + bytes).unwrap();
    drop(file);
    let model = Model::open(&path).unwrap();
    assert_eq!(model.tensor_bytes(), 256 * MIB);

    let palette = Target::Palette(Width::new(4).unwrap());
    let cases = [
        (Target::Tq2_0, Rule::AbsMax, None, "gguf"),
        (Target::Int8, Rule::AbsMax, None, "safetensors"),
        (Target::Int8, Rule::AbsMax, Some(Per::Tensor), "safetensors"),
        // Many scales.
        (
            Target::Int8,
            Rule::AbsMax,
            Some(Per::Block(32)),
            "safetensors",
        ),
        (Target::Ternary, Rule::AbsMean, None, "safetensors"),
        (Target::Ternary, Rule::Optimal, None, "safetensors"),
        (Target::BitnetHf, Rule::AbsMax, None, "safetensors"),
        (palette, Rule::AbsMax, None, "safetensors"),
    ];
    for (target, rule, per, extension) in cases {
        let out = folder.file(&format!("out.{extension}"));
        let options = QuantizeOptions {
            rule: Some(rule),
            per,
            force: true,
            ..QuantizeOptions::new(target)
        };
        let (before, start) = (held(), Instant::now());
        let peak = peak(|| {
            quantize(&model, &options, &out, &()).unwrap();
        });
        let [buffers, mapped] = [0, 1].map(|kind| peak[kind].saturating_sub(before[kind]));
        let words = format!(
            "{target} {rule:?} {per:?}: {} MiB of buffers, {} MiB of the input, {:?}",
            buffers / MIB,
            mapped / MIB,
            start.elapsed()
        );
        println!("{words}");
        assert!(buffers < 64 * MIB && mapped < 128 * MIB, "{words}");
        std::fs::remove_file(&out).unwrap();
    }
}
