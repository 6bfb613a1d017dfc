//! Memory beyond the mapping stays below 64 MiB plus the largest tensor's output.
//!
//! The only test of its binary, so that nothing else counts. Linux tells anonymous memory apart from mapped files.
#![cfg(target_os = "linux")]

mod files;

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use files::Folder;
use tercet_core::palette::Width;
use tercet_core::quant::Rule;
use tercet_host::convert::Target;
use tercet_host::{Model, QuantizeOptions, quantize};

const MIB: u64 = 1 << 20;
/// Two tensors of 512 MiB each as `f32`.
const ROWS: u64 = 32_768;
const COLUMNS: u64 = 4096;

/// Bytes of anonymous memory that the process holds now.
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .expect("Linux 4.5 has it");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kib * 1024
}

/// The most anonymous memory seen while `work` runs, looked at every millisecond.
fn peak(work: impl FnOnce()) -> u64 {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(anonymous());
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
fn memory_stays_bounded_on_a_gibibyte() {
    let folder = Folder::new();
    let path = folder.file("sparse.safetensors");
    let bytes = ROWS * COLUMNS * 4;
    let header = format!(
        r#"{{"a":{{"dtype":"F32","shape":[{ROWS},{COLUMNS}],"data_offsets":[0,{bytes}]}},"b":{{"dtype":"F32","shape":[{ROWS},{COLUMNS}],"data_offsets":[{bytes},{}]}}}}"#,
        2 * bytes
    );
    let mut file = File::create(&path).unwrap();
    file.write_all(&(header.len() as u64).to_le_bytes())
        .unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(8 + header.len() as u64 + 2 * bytes).unwrap();
    drop(file);
    let model = Model::open(&path).unwrap();
    assert!(model.tensor_bytes() >= 1 << 30);

    let values = ROWS * COLUMNS;
    let palette = Target::Palette(Width::new(4).unwrap());
    let cases = [
        (Target::Tq2_0, Rule::AbsMax, "gguf", values / 256 * 66),
        (Target::Int8, Rule::AbsMax, "safetensors", values + ROWS * 4),
        (Target::Ternary, Rule::Optimal, "safetensors", values),
        (Target::BitnetHf, Rule::AbsMax, "safetensors", values / 4),
        (palette, Rule::AbsMax, "safetensors", values / 2),
    ];
    for (target, rule, extension, output) in cases {
        let out = folder.file(&format!("out.{extension}"));
        let options = QuantizeOptions {
            rule: Some(rule),
            force: true,
            ..QuantizeOptions::new(target)
        };
        let before = anonymous();
        let peak = peak(|| {
            quantize(&model, &options, &out, &()).unwrap();
        });
        let used = peak.saturating_sub(before);
        println!(
            "{target}: {} MiB beyond the mapping, largest output {} MiB",
            used / MIB,
            output / MIB
        );
        assert!(used < 64 * MIB + output, "{target}: {} MiB", used / MIB);
        std::fs::remove_file(&out).unwrap();
    }
}
