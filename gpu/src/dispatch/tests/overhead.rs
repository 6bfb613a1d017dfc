//! What a dispatched call costs beside the work itself.

use std::time::Instant;

use tercet_core::block::Format;
use tercet_core::engine::BlockEngine;
use tercet_host::parallel::Threads;

use super::with_device;
use crate::dispatch::Settings;

/// `cargo test --release -p tercet-gpu --lib -- --ignored overhead --nocapture`.
#[test]
#[ignore = "times this machine"]
fn overhead_of_a_call_is_below_a_microsecond() {
    const CALLS: u32 = 1_000_000;
    let (dispatcher, _) = with_device(Settings::default());
    let blocks = [1; 34];
    let mut out = [0.0; 32];
    let mut engine = Threads::alone();
    let mut nanoseconds = |call: &mut dyn FnMut(&mut [f32])| {
        let start = Instant::now();
        for _ in 0..CALLS {
            call(std::hint::black_box(&mut out));
        }
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    let mut least = [f64::INFINITY; 2];
    for _ in 0..5 {
        let direct = nanoseconds(&mut |out| engine.decode(Format::Q8_0, &blocks, out).unwrap());
        let dispatched =
            nanoseconds(&mut |out| dispatcher.decode(Format::Q8_0, &blocks, out).unwrap());
        least = [least[0].min(direct), least[1].min(dispatched)];
    }
    let [direct, dispatched] = least;
    println!(
        "direct {direct:.0} ns, dispatched {dispatched:.0} ns: {:.0} ns more",
        dispatched - direct
    );
    assert!(dispatched - direct <= 1000.0);
}
