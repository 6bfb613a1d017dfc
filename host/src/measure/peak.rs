//! What an instruction set multiplies and adds.

use std::sync::Barrier;
use std::time::Instant;

use rayon::{broadcast, current_num_threads};
use serde::Serialize;

use super::work::Arithmetic;
use crate::simd::Backend;

/// Multiply-adds a second of a pool of threads, over registers alone: no load, no store.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// f32: a multiplication and an addition, each rounded.
    pub f32: f64,
    /// int8 × int8 into i32.
    pub int8: f64,
    /// −1, 0, 1 × int8, by what is fastest for such codes.
    pub ternary: f64,
}

impl Peak {
    /// The rate of a kind.
    pub const fn of(&self, arithmetic: Arithmetic) -> f64 {
        match arithmetic {
            Arithmetic::F32 => self.f32,
            Arithmetic::Int8 => self.int8,
            Arithmetic::Ternary => self.ternary,
        }
    }
}

/// The [`Peak`] of a backend on a number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BackendPeak {
    /// The instruction set.
    pub backend: &'static str,
    /// How many threads.
    pub threads: usize,
    /// What they multiply and add.
    #[serde(flatten)]
    pub peak: Peak,
}

/// Multiply-adds of a thread in a round: a millisecond or so.
const ROUND: u64 = 200_000_000;

/// Measures the rayon pool it is called in: the best of `rounds` rounds, at least 1, after a warm-up.
///
/// [`Backend::SCALAR`] has no registers of its own: there it is what the compiler makes of a product of arrays in the
/// nearest cache.
pub fn peak(backend: Backend, rounds: usize) -> Peak {
    let peak = backend.peak();
    let [f32, int8, ternary] = [peak.f32, peak.int8, peak.ternary].map(|turns| {
        let round = || {
            let barrier = Barrier::new(current_num_threads());
            let done = broadcast(|_| {
                barrier.wait();
                let start = Instant::now();
                let products = turns.run(ROUND);
                (start, Instant::now(), products)
            });
            let start = done.iter().map(|done| done.0).min();
            let end = done.iter().map(|done| done.1).max();
            let span = end.zip(start).map(|(end, start)| end - start);
            let products: u64 = done.iter().map(|done| done.2).sum();
            products as f64 / span.unwrap_or_default().as_secs_f64()
        };
        round();
        (0..rounds.max(1)).map(|_| round()).fold(0.0, f64::max)
    });
    Peak { f32, int8, ternary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_has_plausible_rates() {
        for backend in Backend::all() {
            let peak = peak(backend, 2);
            for rate in [peak.f32, peak.int8, peak.ternary] {
                assert!((1e7..1e15).contains(&rate), "{backend}: {peak:?}");
            }
        }
    }
}
