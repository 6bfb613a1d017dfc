//! `tercet info` beside a device.

use serde_json::Value;

use super::folder::{Folder, fields};
use super::{is_emulated, on_device};

#[test]
fn info_has_a_row_for_each_device() {
    let folder = Folder::new();
    let Some(run) = on_device(
        &folder,
        &["info", "--json"],
        "devices=2,capability=8.0,memory=64M",
    ) else {
        return;
    };
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert!(found["no_gpu"].is_null(), "{found}");
    let gpus = found["gpus"].as_array().unwrap();
    let names = [
        "cache",
        "capability",
        "clock",
        "device",
        "driver",
        "free",
        "memory",
        "memory_bus",
        "memory_clock",
        "multiprocessors",
        "name",
        "refused",
    ];
    for (number, gpu) in gpus.iter().enumerate() {
        assert_eq!(fields(gpu), names);
        assert_eq!(gpu["device"], number);
        assert!(gpu["free"].as_u64() <= gpu["memory"].as_u64(), "{gpu}");
    }
    let text = on_device(&folder, &["info"], "devices=2,capability=8.0,memory=64M")
        .unwrap()
        .out;
    let (_, table) = text.split_once("\n\n").unwrap();
    assert_eq!(table.lines().count(), 1 + gpus.len(), "{text}");
    if is_emulated() {
        assert_eq!(gpus.len(), 2);
        assert_eq!(
            (&gpus[1]["capability"], &gpus[1]["driver"]),
            (&"8.0".into(), &"12.4".into())
        );
        assert_eq!(gpus[1]["memory"], 64 << 20);
        assert!(table.contains("64.0 MiB"), "{text}");
    }
}

#[test]
fn info_says_why_a_device_is_not_used() {
    let folder = Folder::new();
    for (switches, reason) in [
        ("capability=6.1", "kernels need compute capability 7.5"),
        ("pools=0", "it has no memory pools"),
    ] {
        let Some(run) = on_device(&folder, &["info"], switches) else {
            return;
        };
        if is_emulated() {
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
            assert!(
                run.out.contains(&format!("  not used: {reason}\n")),
                "{}",
                run.out
            );
        }
    }
}

#[test]
fn info_says_why_there_is_no_device() {
    let folder = Folder::new();
    for (switches, reason) in [
        ("devices=0", "no CUDA device 0: this machine has 0"),
        (
            "driver=11070",
            "the CUDA driver has version 11.7; version 11.8 or newer is needed",
        ),
    ] {
        let Some(run) = on_device(&folder, &["info"], switches) else {
            return;
        };
        if is_emulated() {
            assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
            assert!(
                run.out
                    .ends_with(&format!("GPUs              none: {reason}\n")),
                "{}",
                run.out
            );
        }
    }
}
