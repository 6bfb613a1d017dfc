//! Runs one clustering on several engines. Time differs, no bit does.
//!
//! `cargo run --release -p tercet-host --example 06_engines`

use std::time::Instant;

use tercet_core::Scalar;
use tercet_core::number::Random;
use tercet_host::engine::FlowEngine;
use tercet_host::parallel::Threads;
use tercet_host::points::Points;
use tercet_host::simd::Backend;
use tercet_host::{Error, KMeans};

fn timed<E: FlowEngine>(name: &str, engine: &mut E, points: &Points) -> Result<Vec<u32>, Error> {
    let start = Instant::now();
    let found = KMeans::new(16).max_iter(10).fit_on(engine, points)?;
    println!(
        "{name:24} {:10.3?}  inertia {}",
        start.elapsed(),
        found.inertia
    );
    Ok(found.clustering.labels)
}

fn main() -> Result<(), Error> {
    let mut random = Random::new(1);
    let values: Vec<i8> = (0..40_000 * 16).map(|_| random.below(256) as i8).collect();
    let points = Points::from_rows(16, values)?;

    // The core's own loops, as on a microcontroller; then every instruction set of this processor.
    let expected = timed("scalar", &mut Scalar, &points)?;
    for backend in Backend::all() {
        let mut one = Threads::alone().with_backend(backend);
        let mut all = Threads::default().with_backend(backend);
        assert_eq!(
            timed(&format!("{backend}, one thread"), &mut one, &points)?,
            expected
        );
        assert_eq!(
            timed(&format!("{backend}, all threads"), &mut all, &points)?,
            expected
        );
    }
    Ok(())
}
