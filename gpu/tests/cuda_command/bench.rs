//! `tercet bench --backend cuda`: every kernel that the catalogue has words for, held against the scalar engine's bits.

use std::fs;

use serde_json::Value;

use super::folder::Folder;
use super::{is_emulated, on_device};

const SMALL: [&str; 7] = [
    "bench",
    "--quick",
    "--size",
    "32768",
    "--threads",
    "1",
    "--op",
];

/// The device's row and the scalar engine's of each operation, in order.
fn pairs(report: &Value) -> Vec<(&Value, Option<&Value>)> {
    let results = report["results"].as_array().unwrap();
    let scalar = results.iter().filter(|found| found["engine"] == "scalar");
    let same = |a: &Value, b: &Value| a["operation"] == b["operation"] && a["size"] == b["size"];
    let device = |of: &Value| {
        results
            .iter()
            .find(|found| found["device"] == true && same(found, of))
    };
    scalar.map(|of| (of, device(of))).collect()
}

#[test]
fn every_kernel_gives_the_right_bits_and_has_a_row() {
    let folder = Folder::new();
    let operations = [
        "ternary",
        "int8",
        "encode",
        "decode",
        "dot tq2_0",
        "matvec",
        "matmat",
        "k-means",
        "nearest",
        "search",
        "histogram",
        "mean",
        "fp8",
        "norm",
    ];
    let report = ["--backend", "cuda", "--json", "--report", "speed"];
    let arguments = [&SMALL[..], &operations, &report].concat();
    let Some(run) = on_device(&folder, &arguments, "seed=3") else {
        return;
    };
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert!(
        report["left_out"].as_array().unwrap().is_empty(),
        "{report}"
    );
    let transfers = &report["device"]["transfers"];
    for way in ["to_device_bytes_per_second", "from_device_bytes_per_second"] {
        assert!(transfers[way].as_f64().unwrap() > 0.0, "{transfers}");
    }
    let copies = report["device"]["copies"].as_array().unwrap();
    assert!(
        copies.len() >= 3
            && copies
                .iter()
                .all(|copy| copy["bytes_per_second"].as_f64().unwrap() > 0.0)
    );
    let mut rows = 0;
    for (scalar, device) in pairs(&report) {
        let name = scalar["operation"].as_str().unwrap();
        // What no kernel does with everything on the device: a palette's choice, conversions of files, a model's steps,
        // both planes of activations at once.
        let other = [
            "encode palette",
            "convert",
            "model",
            "attention",
            "matvec a16",
            "matmat a16",
        ];
        assert_eq!(
            device.is_none(),
            other.iter().any(|word| name.contains(word)),
            "{name}"
        );
        let Some(device) = device else { continue };
        rows += 1;
        assert_eq!(
            (&device["engine"], &device["backend"]),
            (&"cuda".into(), &"cuda".into())
        );
        assert_eq!(
            (&device["threads"], &device["bound"]),
            (&0.into(), &"memory".into())
        );
        assert_eq!(device["bytes"], scalar["bytes"]);
        let number = |field: &str| device[field].as_f64().unwrap();
        assert!(
            number("seconds") > 0.0 && number("samples") >= 1.0,
            "{device}"
        );
        let (least, ratio) = (number("attainable_seconds"), number("roofline"));
        assert!(
            (least / number("seconds") / ratio - 1.0).abs() < 1e-9,
            "{device}"
        );
        let speedup = scalar["seconds"].as_f64().unwrap() / number("seconds");
        assert!((number("speedup") / speedup - 1.0).abs() < 1e-9, "{device}");
    }
    assert!(rows >= 44, "{rows}");
    // Steps of k-means by warpgroup products too, where a device has them; bits were compared.
    let others = report["results"].as_array().unwrap().iter();
    let others: Vec<_> = others
        .filter(|found| found["engine"] == "cuda wgmma")
        .collect();
    assert!(
        !is_emulated() || !others.is_empty(),
        "no row of warpgroup products"
    );
    for other in others {
        assert!(other["operation"].as_str().unwrap().contains("k-means"));
        assert_eq!(other["device"], true);
    }
    let page = fs::read_to_string(folder.path("speed/bench.html")).unwrap();
    assert!(
        page.contains(">cuda<") && page.contains("copies up to"),
        "no device on the page"
    );
    // Ceilings that are drawn are the processor's.
    assert!(page.contains("Roofline of scalar"), "no roofline");
}

#[test]
fn all_has_the_device_beside_the_processor() {
    let folder = Folder::new();
    let arguments = [&SMALL[..], &["dequantize int8", "--backend", "all"]].concat();
    let Some(run) = on_device(&folder, &arguments, "") else {
        return;
    };
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    for name in ["scalar", "threads × 1", "cuda"] {
        assert!(
            run.out.contains(&format!("dequantize int8  32768  {name}")),
            "{}",
            run.out
        );
    }
    assert!(run.out.contains("device copy"), "{}", run.out);
}

#[test]
fn what_has_no_room_is_left_out_and_said_and_a_lost_device_is_a_failure() {
    if !is_emulated() {
        return;
    }
    let folder = Folder::new();
    let arguments = [&SMALL[..], &["int8 rows", "--backend", "cuda"]].concat();
    let Some(run) = on_device(&folder, &arguments, "memory=64K") else {
        return;
    };
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let line = "int8 rows of 32768: left out on cuda: out of device memory: ";
    assert!(run.out.contains(line), "{}", run.out);
    assert!(run.out.contains("scalar"), "{}", run.out);
    let run = on_device(&folder, &arguments, "fail=lost:2").unwrap();
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    let line = "error: int8 rows of 32768: cuda: the CUDA device was lost: CUDA_ERROR_";
    assert!(
        run.err.starts_with(line) && run.err.lines().count() == 1,
        "{}",
        run.err
    );
}
