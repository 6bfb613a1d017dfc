//! Peak arithmetic of an instruction set.

use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use rayon::{broadcast, current_num_threads};
use serde::Serialize;

use super::clock::gather;
use super::work::Arithmetic;
use crate::simd::Backend;

/// Multiply-adds per second of a pool of threads, only over registers: no loads, no stores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// f32: a multiplication and an addition, each rounded.
    pub f32: f64,
    /// int8 × int8 into i32.
    pub int8: f64,
    /// −1, 0, 1 × int8, with the fastest instructions for such codes.
    pub ternary: f64,
}

impl Peak {
    /// Returns the rate of a kind.
    pub const fn of(&self, arithmetic: Arithmetic) -> f64 {
        match arithmetic {
            Arithmetic::F32 => self.f32,
            Arithmetic::Int8 => self.int8,
            Arithmetic::Ternary => self.ternary,
        }
    }

    /// Returns the larger of both for each rate.
    pub(super) const fn or_better(self, other: Self) -> Self {
        Self {
            f32: self.f32.max(other.f32),
            int8: self.int8.max(other.int8),
            ternary: self.ternary.max(other.ternary),
        }
    }
}

/// The [`Peak`] of a backend on a number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BackendPeak {
    /// The instruction set.
    pub backend: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Their multiply-adds per second.
    #[serde(flatten)]
    pub peak: Peak,
}

/// Multiply-adds per thread and round: a tenth of a millisecond on the fastest.
const ROUND: u64 = 50_000_000;
/// Minimum number of rounds.
const ROUNDS: u32 = 3;

/// Measures the current rayon pool: for each kind the best of the rounds that fit `budget`, at least 3, after a
/// warm-up.
///
/// [`Backend::SCALAR`] has no registers of its own: there it measures the compiler's code for a product of arrays in
/// the nearest cache.
pub fn peak(backend: Backend, budget: Duration) -> Peak {
    let peak = backend.peak();
    let [f32, int8, ternary] = [peak.f32, peak.int8, peak.ternary].map(|turns| {
        let round = || {
            let (waiting, all) = (AtomicUsize::new(0), current_num_threads());
            let done = broadcast(|_| {
                gather(&waiting, all);
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
        let (start, mut rounds, mut best) = (Instant::now(), 0, 0.0);
        while rounds < ROUNDS || start.elapsed() < budget {
            best = round().max(best);
            rounds += 1;
        }
        best
    });
    Peak { f32, int8, ternary }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_has_plausible_rates() {
        for backend in Backend::all() {
            let peak = peak(backend, Duration::ZERO);
            for rate in [peak.f32, peak.int8, peak.ternary] {
                assert!((1e7..1e15).contains(&rate), "{backend}: {peak:?}");
            }
        }
    }
}
