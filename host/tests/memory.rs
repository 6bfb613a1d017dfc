//! Memory stays bounded whatever the size of a tensor: buffers below 64 MiB, and the mapped part of the input below
//! 128 MiB.
//!
//! The only test of its binary, so that nothing else counts. Linux tells anonymous memory apart from mapped files.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "shared with the tests of restoring")]
#[path = "restore/apart.rs"]
mod apart;
mod files;

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apart::Apart;
use files::Folder;
use tercet_core::block::Format;
use tercet_core::palette::Width;
use tercet_core::quant::Rule;
use tercet_host::convert::{FloatType, Per, Target};
use tercet_host::parallel::Threads;
use tercet_host::{
    DequantizeOptions, QuantizeOptions, TensorFile, compare, dequantize, inspect, quantize,
};

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

/// A safetensors file of zeros that takes no room on the disk: tensors from a header and so many bytes.
fn sparse(folder: &Folder, name: &str, header: &str, bytes: u64) -> TensorFile {
    let path = folder.file(name);
    let mut file = File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes())
        .unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + bytes).unwrap();
    drop(file);
    let model = TensorFile::open(&path).unwrap();
    assert_eq!(model.tensor_bytes(), bytes);
    model
}

/// Runs `work`, which must stay within the bounds.
fn bounded(name: &str, work: impl FnOnce()) {
    let (before, start) = (held(), Instant::now());
    let peak = peak(work);
    let [buffers, mapped] = [0, 1].map(|kind| peak[kind].saturating_sub(before[kind]));
    let words = format!(
        "{name}: {} MiB of buffers, {} MiB of the input, {:?}",
        buffers / MIB,
        mapped / MIB,
        start.elapsed()
    );
    println!("{words}");
    assert!(buffers < 64 * MIB && mapped < 128 * MIB, "{words}");
}

#[test]
fn memory_does_not_grow_with_a_tensor() {
    let folder = Folder::new();
    let bytes = ROWS * COLUMNS * 4;
    let header = format!(
        r#"{{"a":{{"dtype":"F32","shape":[{ROWS},{COLUMNS}],"data_offsets":[0,{bytes}]}}}}"#
    );
    let model = sparse(&folder, "sparse.safetensors", &header, bytes);

    let palette = Target::Palette(Width::new(4).unwrap());
    let cases = [
        (Target::Blocks(Format::Tq2_0), Rule::AbsMax, None, "gguf"),
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
        bounded(&format!("{target} {rule:?} {per:?}"), || {
            quantize(&mut Threads::default(), &model, &options, &out, &()).unwrap();
        });
        std::fs::remove_file(&out).unwrap();
    }

    // Back, and looked at, on the processor's threads and on an engine of its own memory, the device's stand-in.
    let (codes, end) = (ROWS * COLUMNS, ROWS * COLUMNS + 4);
    let header = format!(
        r#"{{"a":{{"dtype":"I8","shape":[{ROWS},{COLUMNS}],"data_offsets":[0,{codes}]}},"a_scale":{{"dtype":"F32","shape":[1],"data_offsets":[{codes},{end}]}}}}"#
    );
    let int8 = sparse(&folder, "int8.safetensors", &header, end);
    let out = folder.file("out.safetensors");
    for dtype in [FloatType::F32, FloatType::F16] {
        let options = DequantizeOptions { dtype, force: true };
        let (mut apart, mut threads) = (Apart::new(|_| None), Threads::default());
        bounded(&format!("{dtype:?} by threads"), || {
            dequantize(&mut threads, &int8, &options, &out, &()).unwrap();
        });
        bounded(&format!("{dtype:?} apart"), || {
            dequantize(&mut apart, &int8, &options, &out, &()).unwrap();
        });
        assert_eq!(apart.values, codes);
        std::fs::remove_file(&out).unwrap();
    }
    let (mut apart, mut threads) = (Apart::new(|_| None), Threads::default());
    bounded("compared by threads", || {
        compare(&mut threads, &model, &int8, &()).unwrap();
    });
    bounded("compared apart", || {
        compare(&mut apart, &int8, &int8, &()).unwrap();
    });
    bounded("looked at by threads", || {
        inspect(&mut threads, &int8, None, &()).unwrap();
    });
    bounded("looked at apart", || {
        inspect(&mut apart, &int8, None, &()).unwrap();
    });
    assert_eq!(apart.values, 4 * codes);
}
