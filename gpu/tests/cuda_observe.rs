//! What a device is given, as figures and on a time line: kernels, copies, memory, and what several devices do
//! together.

use crate::support::child;
use crate::support::cluster::{Cloud, options, points, run, with_scalar};
use crate::support::cudas::{clustered, cudas, devices_with_nccl};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tercet_core::cluster::{Init, Points, Update};
use tercet_gpu::engine::{Cuda, CudaOptions, Exchange};
use tercet_gpu::observe::FAMILIES;
use tercet_gpu::trace::Recorder;

/// The value of a line of a text.
fn value(text: &str, name: &str) -> f64 {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
        .parse()
        .unwrap()
}

#[test]
fn a_device_s_figures_are_what_it_was_given() {
    let Some(_device) = devices_with_nccl() else {
        return;
    };
    let registry = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&registry, || {
        let options = CudaOptions {
            memory: Some(1 << 20),
            slot: 4096,
            ..CudaOptions::default()
        };
        let mut cuda = Cuda::new(&options).unwrap();
        let there = cuda.upload(&[1_i32; 1000]).unwrap();
        let mut back = [0; 1000];
        cuda.read(&there, &mut back).unwrap();
        cuda.upload(&vec![0_u8; 2 << 20]).unwrap_err();
        let stats = cuda.memory().unwrap().bytes;
        drop(there);

        let text = registry.handle().render();
        let of = |name: &str| value(&text, &format!("tercet_device_{name}{{device=\"0\"}}"));
        assert_eq!(of("memory_capacity_bytes"), f64::from(1 << 20));
        assert_eq!(of("memory_high_water_bytes"), stats.high_water as f64);
        assert_eq!(of("memory_refused_total"), f64::from(stats.failures));
        assert_eq!((of("memory_bytes"), stats.failures), (0.0, 1));
        let what = |name: &str, what: &str| {
            value(
                &text,
                &format!("tercet_device_{name}{{device=\"0\",what=\"{what}\"}}"),
            )
        };
        for way in ["copy_in", "copy_out"] {
            assert_eq!(what("moved_bytes_total", way), 4000.0, "{way}");
            assert!(what("queued_total", way) >= 1.0, "{way}");
        }
        assert_eq!(what("queued_total", "collective"), 0.0);
        for family in FAMILIES
            .iter()
            .filter(|it| it.name.starts_with("tercet_device_"))
        {
            assert!(text.contains(&format!("# HELP {} {}\n", family.name, family.help)));
        }
    });
}

/// A clustering by three devices over NCCL: each device's row has the collectives, as many on each, at about the same
/// times.
///
/// In a process of its own: what is recorded is the process's.
#[test]
fn collectives_stand_on_the_rows_of_all_devices_that_meet() {
    let name = "collectives_stand_on_the_rows_of_all_devices_that_meet";
    if !child::alone(module_path!(), name, &[]) {
        return;
    }
    let Some(device) = devices_with_nccl() else {
        return;
    };
    // Before any engine is made.
    let recorder = Recorder::start().unwrap();
    let registry = PrometheusBuilder::new().build_recorder();
    let values = points(Cloud::Groups, 48, 5, 1);
    let points = Points::new(&values, 5).unwrap();
    let expected = with_scalar(points, 4, Update::Mean, |problem| {
        run(problem, &options(Init::Greedy, 7), 0)
    });
    let before = device.count("NCCL collectives");
    metrics::with_local_recorder(&registry, || {
        let mut cudas = cudas(3).with_exchange(Exchange::Nccl);
        let found = clustered(&mut cudas, points, 4, Update::Mean, Init::Greedy, 0);
        assert_eq!(found, expected);
        assert_eq!(cudas.exchange(), Ok(Exchange::Nccl));
        // Dropped, the engines read their marks.
    });
    let met = device.count("NCCL collectives") - before;
    assert!(met > 0);

    let mut json = Vec::new();
    recorder.write(&mut json).unwrap();
    let trace: Value = serde_json::from_slice(&json).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    // Devices are processes 2, 3 and 4.
    let row = |device: u64, name: &str| -> Vec<(f64, f64, u64)> {
        let of = events.iter().filter(|event| {
            event["ph"] == "X" && event["pid"] == 2 + device && event["name"] == name
        });
        of.map(|event| {
            assert_eq!(event["tid"], 1, "beside kernels");
            let number = |name: &str| event[name].as_f64().unwrap();
            let bytes = event["args"]["bytes"].as_u64().unwrap();
            (number("ts"), number("dur"), bytes)
        })
        .collect()
    };
    let text = registry.handle().render();
    for name in ["reduce scatter", "all gather"] {
        let rows = [0, 1, 2].map(|device| row(device, name));
        assert!(!rows[0].is_empty(), "{name}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{name}");
        for at in 0..rows[0].len() {
            // None ends before each has begun; times of devices are known to some microseconds.
            let begun = rows.iter().map(|row| row[at].0).fold(0.0, f64::max);
            for row in &rows {
                let (start, length, bytes) = row[at];
                assert!(start + length >= begun - 2000.0, "{name}, {at}: {rows:?}");
                assert!(bytes > 0 && bytes == rows[0][at].2);
            }
        }
    }
    for device in 0..3 {
        let count = |what: &str| {
            let name = format!("tercet_device_queued_total{{device=\"{device}\",what=\"{what}\"}}");
            value(&text, &name)
        };
        let both = row(device, "reduce scatter").len() + row(device, "all gather").len();
        assert_eq!(count("collective"), both as f64);
        assert!(count("kernel") > 0.0);
    }
}
