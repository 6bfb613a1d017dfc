//! `--trace` of work on a device.

use serde_json::Value;

use super::folder::{Folder, noise};
use super::on_device;

#[test]
fn kernels_and_copies_stand_beside_the_flow_that_waits_for_them() {
    let folder = Folder::new();
    let values = noise(3, 600 * 20);
    folder.safetensors("points.safetensors", &[("rows", &[600, 20], &values)]);
    let arguments = [
        "kmeans",
        "points.safetensors",
        "-k",
        "4",
        "--backend",
        "cuda",
        "--trace",
        "t.json",
        "--json",
    ];
    let Some(run) = on_device(&folder, &arguments, "seed=5") else {
        return;
    };
    assert_eq!(run.code, Some(0), "{}", run.err);
    let text = std::fs::read_to_string(folder.path("t.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let rows: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name" && event["pid"] == 2)
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(rows, ["kernels", "copies in", "copies out"]);
    let fit = events.iter().find(|event| event["name"] == "fit").unwrap();
    let times = |event: &Value| {
        let start = event["ts"].as_f64().unwrap();
        (start, start + event["dur"].as_f64().unwrap())
    };
    let (begin, end) = times(fit);
    let of = |row: u64| {
        let on =
            move |event: &&Value| event["pid"] == 2 && event["tid"] == row && event["ph"] == "X";
        events.iter().filter(on).collect::<Vec<_>>()
    };
    let (kernels, copies) = (of(1), [of(2), of(3)].concat());
    let named = |word: &str| {
        kernels
            .iter()
            .any(|event| event["name"].as_str().unwrap().contains(word))
    };
    assert!(named("cluster_assign") && named("graph"), "{kernels:?}");
    // The points alone are 12,000 bytes, and 600 labels come back.
    let moved = |events: &[&Value]| {
        events
            .iter()
            .map(|event| event["args"]["bytes"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(moved(&of(2)) >= 12_000 && moved(&of(3)) >= 2400);
    // Times of the device are known to some microseconds.
    for event in kernels.iter().chain(&copies) {
        let (start, stop) = times(event);
        assert!(
            begin - 100.0 <= start && stop <= end + 100.0,
            "{event} outside {fit}"
        );
    }
}
