//! Counts add up, and are exported completely.

use super::*;
use crate::dispatch::{Job, Prediction};

fn call(job: &Job, engine: Engine, nanoseconds: u64, predicted: f64) -> Call<'_> {
    Call {
        job,
        engine,
        nanoseconds,
        prediction: Some(Prediction {
            launch: predicted,
            ..Prediction::default()
        }),
        finished: false,
    }
}

fn counted() -> Metrics {
    let counters = Counters::new();
    let job = Job::each(Operation::Decode, 10, 34, 40);
    // Use several threads, so that several tables have counts.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                counters.done(&call(&job, Engine::Simd, 2_000, 3e-6));
                counters.done(&call(&job, Engine::Threads, 10_000, 1e-6));
            });
        }
    });
    counters.done(&Call {
        finished: true,
        ..call(&job, Engine::Simd, 2_000, 3e-6)
    });
    // A whole flow: a tenth of its 8 µs is the engine's, and the rest is no prediction error.
    let flow = job.in_flow();
    counters.done(&call(&flow, Engine::Scalar, 8_000, 8e-7));
    counters.done(&call(&job, Engine::Scalar, 2_000, 1e-6));
    counters.failed(Operation::Decode, Engine::Cuda);
    counters.refused();
    counters.snapshot()
}

#[test]
fn totals_are_the_sums_of_the_engines() {
    let metrics = counted();
    let totals = (
        metrics.calls,
        metrics.elements,
        metrics.bytes,
        metrics.refused,
        metrics.fallbacks,
    );
    assert_eq!(totals, (11, 110, 11 * 74, 1, 1));
    assert!((metrics.seconds - (5.0 * 2e-6 + 4.0 * 1e-5 + 1e-5)).abs() < 1e-12);
    let scalar = metrics.of(Operation::Decode, Engine::Scalar).unwrap();
    assert_eq!((scalar.calls, scalar.flows), (2, 1));
    assert!((scalar.flow_seconds - 8e-6).abs() < 1e-12);
    assert!((scalar.predicted_seconds - 1.8e-6).abs() < 1e-12);
    // The call that is no flow: 1 µs off in 2 µs.
    assert!((scalar.error - 0.5).abs() < 1e-9, "{}", scalar.error);
    let simd = metrics.of(Operation::Decode, Engine::Simd).unwrap();
    assert_eq!((simd.calls, simd.launch_bound, simd.finished), (5, 5, 1));
    assert!((simd.average_seconds - 2e-6).abs() < 1e-12);
    assert!((simd.predicted_seconds - 1.5e-5).abs() < 1e-12);
    // 1 µs off in 2 µs.
    assert!((simd.error - 0.5).abs() < 1e-9, "{}", simd.error);
    assert_eq!(simd.latencies[1], 5);
    let cuda = metrics.of(Operation::Decode, Engine::Cuda).unwrap();
    assert_eq!((cuda.calls, cuda.failures), (0, 1));
    assert_eq!(metrics.of(Operation::Search, Engine::Simd), None);
}

#[test]
fn json_and_prometheus_hold_the_same_figures() {
    let metrics = counted();
    let json: serde_json::Value = serde_json::from_str(&metrics.to_json()).unwrap();
    assert_eq!(json["calls"], 11);
    assert_eq!(json["engines"][0]["operation"], "decode");
    assert_eq!(json["engines"][0]["engine"], "scalar");
    assert_eq!(json["engines"][0]["flows"], 1);
    let text = metrics.to_prometheus();
    for line in [
        r#"tercet_call_seconds_bucket{operation="decode",engine="simd",le="0.000001"} 0"#,
        r#"tercet_call_seconds_bucket{operation="decode",engine="simd",le="0.000004"} 5"#,
        r#"tercet_call_seconds_bucket{operation="decode",engine="simd",le="+Inf"} 5"#,
        r#"tercet_call_seconds_count{operation="decode",engine="threads"} 4"#,
        r#"tercet_flow_seconds_count{operation="decode",engine="scalar"} 1"#,
        r#"tercet_off_seconds_count{operation="decode",engine="scalar"} 1"#,
        r#"tercet_off_seconds_count{operation="decode",engine="threads"} 4"#,
        r#"tercet_elements_total{operation="decode",engine="threads"} 40"#,
        r#"tercet_failures_total{operation="decode",engine="cuda"} 1"#,
        "tercet_refused_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // Every family has its head, and every line is a comment or a name and a number.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let family = name.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| family.strip_suffix(end))
            .unwrap_or(family);
        assert!(text.contains(&format!("# TYPE {family} ")), "{line}");
    }
}
