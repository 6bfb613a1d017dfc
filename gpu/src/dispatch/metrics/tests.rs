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
fn json_holds_the_figures() {
    let metrics = counted();
    let json: serde_json::Value = serde_json::from_str(&metrics.to_json()).unwrap();
    assert_eq!(json["calls"], 11);
    assert_eq!(json["engines"][0]["operation"], "decode");
    assert_eq!(json["engines"][0]["engine"], "scalar");
    assert_eq!(json["engines"][0]["flows"], 1);
}
