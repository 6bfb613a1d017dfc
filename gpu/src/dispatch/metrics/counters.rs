//! Counters that threads add to without waiting for one another.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::recorder::Recorder;
use super::{BoundSeconds, EngineMetrics, LATENCIES, Metrics};
use crate::dispatch::{Bound, Engine, Job, Operation, Prediction};

/// Number of counter tables. Threads that add at the same time should each have their own table, so that they do not
/// compete for cache lines.
const SHARDS: usize = 8;

/// All counters of a dispatcher.
#[derive(Debug)]
pub(in crate::dispatch) struct Counters {
    shards: Box<[Shard]>,
    recorder: Recorder,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    counts: [[Counts; Engine::ALL.len()]; Operation::ALL.len()],
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    elements: AtomicU64,
    bytes: AtomicU64,
    work: AtomicU64,
    predicted: AtomicU64,
    flows: AtomicU64,
    flow_nanoseconds: AtomicU64,
    /// Σ |predicted − actual| of calls that are no flows.
    off: AtomicU64,
    /// Calls by the largest part of their predicted time, and their nanoseconds.
    bound: [AtomicU64; Bound::ALL.len()],
    bound_nanoseconds: [AtomicU64; Bound::ALL.len()],
    failures: AtomicU64,
    finished: AtomicU64,
    latencies: [AtomicU64; LATENCIES.len() + 1],
}

/// A finished call.
#[derive(Clone, Copy, Debug)]
pub(in crate::dispatch) struct Call<'a> {
    pub(in crate::dispatch) job: &'a Job,
    pub(in crate::dispatch) engine: Engine,
    pub(in crate::dispatch) nanoseconds: u64,
    pub(in crate::dispatch) prediction: Option<Prediction>,
    /// True if another engine had failed at it.
    pub(in crate::dispatch) finished: bool,
}

/// Returns the table of this thread: new threads get the tables in turn.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        mine.get()
    })
}

/// Returns the bin of a time: each bin is four times as wide as the one before, from 1 µs on.
const fn bin(nanoseconds: u64) -> usize {
    // Up to 1 µs, or whole microseconds above: ⌈t / 1 µs⌉ in (4^(b−1), 4^b] is bin b.
    let micros = nanoseconds.div_ceil(1000);
    if micros <= 1 {
        return 0;
    }
    let bits = u64::BITS - (micros - 1).leading_zeros();
    let bin = bits.div_ceil(2) as usize;
    if bin > LATENCIES.len() {
        LATENCIES.len()
    } else {
        bin
    }
}

impl Counters {
    pub(in crate::dispatch) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            recorder: Recorder::default(),
        }
    }

    fn counts(&self, operation: Operation, engine: Engine) -> &Counts {
        &self.shards[shard()].counts[operation as usize][engine as usize]
    }

    /// Counts a finished call: about a dozen additions in the thread's own table.
    pub(in crate::dispatch) fn done(&self, call: &Call<'_>) {
        let counts = self.counts(call.job.operation, call.engine);
        let add = |counter: &AtomicU64, amount: u64| counter.fetch_add(amount, Relaxed);
        add(&counts.calls, 1);
        add(&counts.nanoseconds, call.nanoseconds);
        add(&counts.elements, call.job.total(|it| it.elements));
        add(&counts.bytes, call.job.total(Job::bytes));
        add(&counts.work, call.job.total(|it| it.work));
        add(&counts.latencies[bin(call.nanoseconds)], 1);
        if let Some(prediction) = call.prediction {
            let predicted = (prediction.total() * 1e9) as u64;
            add(&counts.predicted, predicted);
            if !call.job.flow {
                add(&counts.off, predicted.abs_diff(call.nanoseconds));
            }
            let bound = prediction.bound() as usize;
            add(&counts.bound[bound], 1);
            add(&counts.bound_nanoseconds[bound], call.nanoseconds);
        }
        if call.job.flow {
            add(&counts.flows, 1);
            add(&counts.flow_nanoseconds, call.nanoseconds);
        }
        if call.finished {
            add(&counts.finished, 1);
        }
        self.recorder.done(call);
    }

    /// Counts a call that an engine failed at.
    pub(in crate::dispatch) fn failed(&self, operation: Operation, engine: Engine) {
        self.counts(operation, engine)
            .failures
            .fetch_add(1, Relaxed);
        self.recorder.failed(operation, engine);
    }

    /// Counts a call that was refused.
    pub(in crate::dispatch) fn refused(&self) {
        self.shards[shard()].refused.fetch_add(1, Relaxed);
        self.recorder.refused();
    }

    /// Returns all counts at this moment.
    pub(in crate::dispatch) fn snapshot(&self) -> Metrics {
        let mut metrics = Metrics::default();
        for operation in Operation::ALL {
            for engine in Engine::ALL {
                let found = self.engine(operation, engine);
                metrics.calls += found.calls;
                metrics.seconds += found.seconds;
                metrics.elements = metrics.elements.wrapping_add(found.elements);
                metrics.bytes = metrics.bytes.wrapping_add(found.bytes);
                metrics.fallbacks += found.finished;
                if found.calls > 0 || found.failures > 0 {
                    metrics.engines.push(found);
                }
            }
        }
        let refused = self.shards.iter().map(|shard| shard.refused.load(Relaxed));
        metrics.refused = refused.sum();
        metrics
    }

    fn engine(&self, operation: Operation, engine: Engine) -> EngineMetrics {
        let all = || {
            let (operation, engine) = (operation as usize, engine as usize);
            self.shards
                .iter()
                .map(move |shard| &shard.counts[operation][engine])
        };
        let sum = |of: fn(&Counts) -> &AtomicU64| {
            let loaded = all().map(|counts| of(counts).load(Relaxed));
            // Sums wrap, as the counters themselves do after centuries.
            loaded.fold(0, u64::wrapping_add)
        };
        let calls = sum(|counts| &counts.calls);
        let seconds = sum(|counts| &counts.nanoseconds) as f64 * 1e-9;
        let flow_seconds = sum(|counts| &counts.flow_nanoseconds) as f64 * 1e-9;
        let (judged, off) = (
            seconds - flow_seconds,
            sum(|counts| &counts.off) as f64 * 1e-9,
        );
        let bound = |bound: Bound| {
            let counts = all().map(|counts| counts.bound[bound as usize].load(Relaxed));
            counts.fold(0, u64::wrapping_add)
        };
        let bound_seconds = |bound: Bound| {
            let counts = all().map(|counts| counts.bound_nanoseconds[bound as usize].load(Relaxed));
            counts.fold(0, u64::wrapping_add) as f64 * 1e-9
        };
        let latencies = (0..=LATENCIES.len()).map(|bin| {
            let loaded = all().map(|counts| counts.latencies[bin].load(Relaxed));
            loaded.sum()
        });
        EngineMetrics {
            operation,
            engine,
            calls,
            seconds,
            average_seconds: seconds / calls.max(1) as f64,
            elements: sum(|counts| &counts.elements),
            bytes: sum(|counts| &counts.bytes),
            work: sum(|counts| &counts.work),
            predicted_seconds: sum(|counts| &counts.predicted) as f64 * 1e-9,
            flows: sum(|counts| &counts.flows),
            flow_seconds,
            error: if judged > 0.0 { off / judged } else { 0.0 },
            launch_bound: bound(Bound::Launch),
            transfer_bound: bound(Bound::Transfer),
            memory_bound: bound(Bound::Memory),
            compute_bound: bound(Bound::Compute),
            bound_seconds: BoundSeconds {
                launch: bound_seconds(Bound::Launch),
                transfer: bound_seconds(Bound::Transfer),
                memory: bound_seconds(Bound::Memory),
                compute: bound_seconds(Bound::Compute),
            },
            failures: sum(|counts| &counts.failures),
            finished: sum(|counts| &counts.finished),
            latencies: latencies.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_of_their_ends() {
        for nanoseconds in (0..40).flat_map(|power| {
            let end = 1u64 << power;
            [end - 1, end, end + 1, 1000 * end, 1000 * end + 1]
        }) {
            let seconds = nanoseconds as f64 * 1e-9;
            let expected = LATENCIES
                .iter()
                .position(|&end| seconds <= end * (1.0 + 1e-12));
            assert_eq!(
                bin(nanoseconds),
                expected.unwrap_or(LATENCIES.len()),
                "{nanoseconds} ns"
            );
        }
        assert_eq!(bin(u64::MAX), LATENCIES.len());
    }
}
