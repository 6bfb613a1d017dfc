//! Ceilings that are measured when they are first needed.

use std::collections::HashMap;
use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::bandwidth::{Rates, Traffic, rates};
use super::peak::{BackendPeak, Peak, peak};
use super::work::{Bound, LeastWork};
use crate::simd::Backend;

/// Pools of threads, and their maximum bandwidth and arithmetic. Each is measured once, and again if some work was
/// faster.
#[derive(Debug)]
pub struct Ceilings {
    budget: Duration,
    pools: HashMap<usize, ThreadPool>,
    rates: HashMap<(usize, Traffic, usize), Rates>,
    peaks: HashMap<(Backend, usize), Peak>,
}

impl Ceilings {
    /// Returns empty ceilings; each will be the best of the rounds that fit `budget`.
    pub fn new(budget: Duration) -> Self {
        Self {
            budget,
            pools: HashMap::new(),
            rates: HashMap::new(),
            peaks: HashMap::new(),
        }
    }

    /// Calls `work` in a pool of `threads` threads, which is kept.
    ///
    /// # Panics
    /// If the system cannot start more threads.
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

    /// Returns the bytes per second of a mix over a working set, with this machine's best backend.
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

    /// Returns the multiply-adds per second of a backend.
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

    /// Returns [`Ceilings::peak`] with its names.
    pub fn named_peak(&mut self, backend: Backend, threads: usize) -> BackendPeak {
        BackendPeak {
            backend: backend.isa().name(),
            threads,
            peak: self.peak(backend, threads),
        }
    }

    /// Returns the minimum seconds of `work` with a backend on so many threads, and the reason: the sum of its passes
    /// over memory, or its multiply-adds. [`Backend::SCALAR`], which has no instruction set of its own, is compared
    /// with the best one's ceiling.
    pub fn attainable(
        &mut self,
        work: &LeastWork,
        backend: Backend,
        threads: usize,
    ) -> (f64, Bound) {
        let moving: f64 = work
            .passes
            .iter()
            .map(|pass| pass.bytes as f64 / self.rates(threads, pass.traffic, work.set).best())
            .sum();
        let multiplying = match work.products {
            0 => 0.0,
            products => products as f64 / self.peak(holding(backend), threads).of(work.arithmetic),
        };
        if multiplying > moving {
            (multiplying, Bound::Arithmetic)
        } else {
            (moving, Bound::Memory)
        }
    }

    /// Corrects the ceilings if work that took `seconds` was faster than they allow: other load may have lowered them
    /// while they were measured. They are then measured again several times and for longer, and the best is kept.
    pub(super) fn doubt(
        &mut self,
        work: &LeastWork,
        backend: Backend,
        threads: usize,
        seconds: f64,
    ) {
        /// So that a moment of other load passes.
        const AGAIN: usize = 12;
        /// Multiple of the budget: as many samples as the work has.
        const LONGER: u32 = 4;
        let budget = self.budget;
        self.budget = budget * LONGER;
        for _ in 0..AGAIN {
            if self.attainable(work, backend, threads).0 <= seconds {
                break;
            }
            self.again(work, holding(backend), threads);
        }
        self.budget = budget;
    }

    /// Measures the ceilings of a work again. None becomes lower.
    fn again(&mut self, work: &LeastWork, backend: Backend, threads: usize) {
        for pass in &work.passes {
            let key = (threads, pass.traffic, work.set);
            let before = self.rates.remove(&key);
            let after = self.rates(threads, pass.traffic, work.set);
            let best = before.map_or(after, |before| after.or_better(before));
            self.rates.insert(key, best);
        }
        if work.products > 0 {
            let key = (backend, threads);
            let before = self.peaks.remove(&key);
            let after = self.peak(backend, threads);
            let best = before.map_or(after, |before| after.or_better(before));
            self.peaks.insert(key, best);
        }
    }
}

/// Returns the backend whose multiply-adds are the ceiling of a backend's work.
fn holding(backend: Backend) -> Backend {
    if backend == Backend::SCALAR {
        Backend::best()
    } else {
        backend
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Arithmetic;
    use super::*;

    /// Of decoding as many bytes, with so many products.
    fn work(products: u64) -> LeastWork {
        LeastWork::pass(1 << 12, Traffic::Widen, 5 << 12).with_products(products, Arithmetic::Int8)
    }

    #[test]
    fn a_ceiling_that_work_is_above_is_measured_again_and_gets_no_lower() {
        let (backend, set) = (Backend::best(), 1 << 16);
        for products in [0, 1 << 12] {
            let work = LeastWork {
                set,
                ..work(products)
            };
            let mut ceilings = Ceilings::new(Duration::ZERO);
            // As if the machine did other work at that moment, except for one of the loops.
            let slow = Rates {
                plain: 1.0,
                streamed: 1e30,
            };
            let idle = Peak {
                f32: 1.0,
                int8: 1.0,
                ternary: 1.0,
            };
            for pass in &work.passes {
                ceilings.rates.insert((1, pass.traffic, set), slow);
            }
            ceilings.peaks.insert((backend, 1), idle);
            ceilings.again(&work, backend, 1);
            for pass in &work.passes {
                let found = ceilings.rates(1, pass.traffic, set);
                assert!(found.plain > 1e6 && found.streamed == 1e30, "{found:?}");
            }
            let found = ceilings.peak(backend, 1);
            assert_eq!(found.int8 > 1e6, work.products > 0, "{found:?}");
        }
    }

    #[test]
    fn work_within_its_ceilings_has_none_measured() {
        let work = work(0);
        let mut ceilings = Ceilings::new(Duration::ZERO);
        let (least, _) = ceilings.attainable(&work, Backend::best(), 1);
        let before = ceilings.rates.clone();
        ceilings.doubt(&work, Backend::best(), 1, least);
        assert_eq!(ceilings.rates, before);
    }
}
