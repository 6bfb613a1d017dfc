//! Ceilings that are measured when they are first needed.

use std::collections::HashMap;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::bandwidth::{Rates, Traffic, rates};
use super::peak::{BackendPeak, Peak, peak};
use super::work::{Bound, Work};
use crate::simd::Backend;

/// Pools of threads, and what they move and multiply at most; each is measured once.
#[derive(Debug)]
pub struct Ceilings {
    budget: Duration,
    pools: HashMap<usize, ThreadPool>,
    rates: HashMap<(usize, Traffic, usize), Rates>,
    peaks: HashMap<(Backend, usize), Peak>,
}

impl Ceilings {
    /// Nothing is measured yet; later each is the best of the rounds that fit `budget`.
    pub fn new(budget: Duration) -> Self {
        Self {
            budget,
            pools: HashMap::new(),
            rates: HashMap::new(),
            peaks: HashMap::new(),
        }
    }

    /// Calls `work` in a pool of `threads` threads, which stays.
    ///
    /// # Panics
    /// Where the system starts no more threads.
    pub fn install<R: Send>(&mut self, threads: usize, work: impl FnOnce() -> R + Send) -> R {
        let start = || {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap_or_else(|error| panic!("{threads} threads: {error}"))
        };
        self.pools
            .entry(threads)
            .or_insert_with(start)
            .install(work)
    }

    /// Bytes a second of a mix over a working set, by this machine's best backend.
    pub fn rates(&mut self, threads: usize, traffic: Traffic, set: usize) -> Rates {
        let key = (threads, traffic, set);
        if let Some(&found) = self.rates.get(&key) {
            return found;
        }
        let budget = self.budget;
        let best = Backend::best();
        let found = self.install(threads, || rates(best, traffic, set, budget));
        self.rates.insert(key, found);
        found
    }

    /// Multiply-adds a second of a backend.
    pub fn peak(&mut self, backend: Backend, threads: usize) -> Peak {
        let key = (backend, threads);
        if let Some(&found) = self.peaks.get(&key) {
            return found;
        }
        let budget = self.budget;
        let found = self.install(threads, || peak(backend, budget));
        self.peaks.insert(key, found);
        found
    }

    /// [`Ceilings::peak`] with its names.
    pub fn named_peak(&mut self, backend: Backend, threads: usize) -> BackendPeak {
        BackendPeak {
            backend: backend.isa().name(),
            threads,
            peak: self.peak(backend, threads),
        }
    }

    /// The least seconds that `work` can take with a backend on so many threads, and why: the sum of its passes over
    /// memory, or its multiply-adds. Without an instruction set of its own ([`Backend::SCALAR`]) it is held against the best
    /// one's.
    pub fn attainable(&mut self, work: &Work, backend: Backend, threads: usize) -> (f64, Bound) {
        let moving: f64 = work
            .passes
            .iter()
            .map(|pass| pass.bytes as f64 / self.rates(threads, pass.traffic, work.set).best())
            .sum();
        let backend = match backend {
            Backend::SCALAR => Backend::best(),
            other => other,
        };
        let multiplying = match work.products {
            0 => 0.0,
            products => products as f64 / self.peak(backend, threads).of(work.arithmetic),
        };
        if multiplying > moving {
            (multiplying, Bound::Arithmetic)
        } else {
            (moving, Bound::Memory)
        }
    }
}
