//! Statistics of a queue.

use std::time::Duration;

use tercet_core::pool::Stats;

/// Number of batches by size: place i counts those of 2^i to 2^(i+1) − 1 requests.
pub type Sizes = [u64; usize::BITS as usize];

/// Statistics of a queue since it began.
///
/// Once all work is done, every submitted request is counted exactly once as answered, failed, cancelled or closed.
/// Figures of a batch are added when it has ended, a moment after its tickets were answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchStats {
    /// Accepted requests.
    pub submitted: u64,
    /// Answered requests, including those whose ticket was gone by then.
    pub answered: u64,
    /// Requests that the work refused, or in which it failed or panicked.
    pub failed: u64,
    /// Requests whose ticket was cancelled or dropped before their batch began.
    pub cancelled: u64,
    /// Requests that were given up when the queue closed.
    pub closed: u64,
    /// Requests not accepted, because the queue was full or closed.
    pub refused: u64,
    /// Requests that waited for room before they were accepted or refused.
    pub blocked: u64,
    /// Calls of [`super::Executor::run`].
    pub batches: u64,
    /// Their sizes.
    pub sizes: Sizes,
    /// Batches that ran in parts for lack of room.
    pub split: u64,
    /// Panics of the work.
    pub panics: u64,
    /// Batches that a worker took over from a late one.
    pub helped: u64,
    /// Number of waiting requests: now, the largest so far, the maximum allowed, and how often there was no room.
    pub depth: Stats,
    /// Total time that requests waited before their batch began.
    pub waited: Duration,
    /// Longest time that a request waited.
    pub longest_wait: Duration,
    /// The workers, in the order given.
    pub workers: Vec<WorkerStats>,
}

/// Statistics of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Its name.
    pub name: String,
    /// Number of batches.
    pub batches: u64,
    /// Number of requests in them.
    pub requests: u64,
    /// Predicted time of these batches.
    pub predicted: Duration,
    /// Actual time of these batches.
    pub busy: Duration,
    /// Predicted time of its remaining work.
    pub outstanding: Duration,
}

/// The outcome of one batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) answered: u64,
    pub(super) failed: u64,
    /// Size of each run.
    pub(super) sizes: Vec<usize>,
    pub(super) split: bool,
    pub(super) panics: u64,
    pub(super) busy: Duration,
}

impl BatchStats {
    pub(super) fn new(names: Vec<String>, capacity: usize) -> Self {
        let worker = |name| WorkerStats {
            name,
            ..WorkerStats::default()
        };
        Self {
            submitted: 0,
            answered: 0,
            failed: 0,
            cancelled: 0,
            closed: 0,
            refused: 0,
            blocked: 0,
            batches: 0,
            sizes: [0; usize::BITS as usize],
            split: 0,
            panics: 0,
            helped: 0,
            depth: Stats {
                capacity,
                ..Stats::default()
            },
            waited: Duration::ZERO,
            longest_wait: Duration::ZERO,
            workers: names.into_iter().map(worker).collect(),
        }
    }

    /// Counts one more waiting request.
    pub(super) fn enter(&mut self) {
        self.submitted += 1;
        self.depth.in_use += 1;
        self.depth.high_water = self.depth.high_water.max(self.depth.in_use);
    }

    /// Counts fewer waiting requests.
    pub(super) fn leave(&mut self, count: usize) {
        self.depth.in_use = self.depth.in_use.saturating_sub(count);
    }

    pub(super) fn refuse(&mut self, full: bool) {
        self.refused += 1;
        if full {
            self.depth.failures = self.depth.failures.saturating_add(1);
        }
    }

    /// Counts a request whose batch begins.
    pub(super) fn begin(&mut self, waited: Duration) {
        self.waited = self.waited.saturating_add(waited);
        self.longest_wait = self.longest_wait.max(waited);
    }

    /// Counts a finished batch of a worker.
    pub(super) fn end(&mut self, worker: usize, tally: &Tally, predicted: Duration) {
        self.answered += tally.answered;
        self.failed += tally.failed;
        self.batches += tally.sizes.len() as u64;
        for size in &tally.sizes {
            self.sizes[size.max(&1).ilog2() as usize] += 1;
        }
        self.split += u64::from(tally.split);
        self.panics += tally.panics;
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.batches += 1;
            worker.requests += tally.answered + tally.failed;
            worker.predicted = worker.predicted.saturating_add(predicted);
            worker.busy = worker.busy.saturating_add(tally.busy);
        }
    }
}
