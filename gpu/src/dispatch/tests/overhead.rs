//! The overhead of a dispatched call beside the work itself.

use std::time::Instant;

use metrics_exporter_prometheus::PrometheusBuilder;
use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_core::scalar::Scalar;
use tercet_host::parallel::Threads;

use super::with_device;
use crate::dispatch::{Dispatcher, Settings};
use crate::observe::{counter, histogram, of};

/// `cargo test --release -p tercet-gpu --lib -- --ignored overhead --nocapture`: without a recorder, with one
/// for Prometheus, with a monitor.
#[test]
#[ignore = "times this machine"]
fn overhead_of_a_call_is_below_a_microsecond() {
    let plain = with_device(Settings::default()).0;
    let registry = PrometheusBuilder::new().build_recorder();
    let recorded = with_device(Settings::default()).0;
    let watched = with_device(Settings::default()).0;
    let monitor = watched.monitor();
    let mut least = [f64::INFINITY; 4];
    metrics::with_local_recorder(&registry, || decode(&recorded, 1));
    for _ in 0..5 {
        let times = [
            direct(),
            decode(&plain, CALLS),
            decode(&recorded, CALLS),
            decode(&watched, CALLS),
        ];
        for (least, time) in least.iter_mut().zip(times) {
            *least = least.min(time);
        }
    }
    drop(monitor);
    let [direct, rest @ ..] = least;
    let more = rest.map(|time| time - direct);
    println!(
        "direct {direct:.0} ns; dispatched {:.0} ns more, recorded {:.0} ns, watched {:.0} ns",
        more[0], more[1], more[2]
    );
    assert!(more.iter().all(|&more| more <= 1000.0), "{more:?}");
}

const CALLS: u32 = 1_000_000;
const BLOCKS: [u8; 34] = [1; 34];

/// Returns the nanoseconds per call.
fn time(calls: u32, mut call: impl FnMut(&mut [f32])) -> f64 {
    let mut out = [0.0; 32];
    let start = Instant::now();
    for _ in 0..calls {
        call(std::hint::black_box(&mut out));
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn direct() -> f64 {
    let mut engine = Threads::alone();
    time(CALLS, |out| {
        engine.decode_blocks(Format::Q8_0, &BLOCKS, out).unwrap();
    })
}

fn decode(dispatcher: &Dispatcher<Scalar>, calls: u32) -> f64 {
    time(calls, |out| {
        dispatcher.decode(Format::Q8_0, &BLOCKS, out).unwrap();
    })
}

/// Measures the cost of recording alone, with null handles and with those of a recorder. The first is a dozen tests of
/// pointers.
#[test]
#[ignore = "times this machine"]
fn overhead_of_figures_that_nobody_records_is_some_nanoseconds() {
    let counted = |recorder: &dyn metrics::Recorder| {
        let figures = metrics::with_local_recorder(recorder, || {
            let labels = ["decode", "simd"];
            let counters = [of::ELEMENTS, of::BYTES, of::WORK].map(|it| counter(&it, &labels));
            let times = [of::CALL_SECONDS, of::PREDICTED_SECONDS, of::OFF_SECONDS];
            (counters, times.map(|it| histogram(&it, &labels)))
        });
        let (counters, times) = std::hint::black_box(&figures);
        time(10 * CALLS, |_| {
            counters.iter().for_each(|counter| counter.increment(3));
            times.iter().for_each(|time| time.record(1e-6));
        })
    };
    let (off, on) = (
        counted(&metrics::NoopRecorder),
        counted(&PrometheusBuilder::new().build_recorder()),
    );
    println!("six figures: {off:.1} ns without a recorder, {on:.1} ns with one");
    assert!(off <= 20.0, "{off}");
}
