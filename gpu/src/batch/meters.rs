//! Figures of a queue, for its own statistics and for the process's recorder.

use std::ops::Deref;
use std::time::Duration;

use metrics::{Counter, Histogram};

use super::BatchStats;
use super::stats::Tally;
use crate::observe::{Level, counter, histogram, of};

/// The figures of a queue. They change only under its lock.
pub(super) struct Counted {
    stats: BatchStats,
    meters: Meters,
}

/// Handles to the recorded figures of a queue.
struct Meters {
    depth: Level,
    submitted: Counter,
    answered: Counter,
    failed: Counter,
    cancelled: Counter,
    closed: Counter,
    refused: Counter,
    blocked: Counter,
    waited: Histogram,
    requests: Histogram,
    split: Counter,
    panics: Counter,
    helped: Counter,
    /// For each worker: the times of its batches, and their predicted times.
    workers: Vec<[Histogram; 2]>,
}

impl Meters {
    fn new(queue: &str, workers: &[String]) -> Self {
        let ended = |outcome| counter(&of::QUEUE_ENDED, &[queue, outcome]);
        let depths = [of::QUEUE_DEPTH, of::QUEUE_HIGH_WATER, of::QUEUE_CAPACITY];
        let times = [of::QUEUE_BATCH_SECONDS, of::QUEUE_BATCH_PREDICTED_SECONDS];
        let worker = |worker: &String| times.map(|family| histogram(&family, &[queue, worker]));
        Self {
            depth: Level::of(depths, of::QUEUE_FULL, &[queue]),
            submitted: counter(&of::QUEUE_SUBMITTED, &[queue]),
            answered: ended("answered"),
            failed: ended("failed"),
            cancelled: ended("cancelled"),
            closed: ended("closed"),
            refused: counter(&of::QUEUE_REFUSED, &[queue]),
            blocked: counter(&of::QUEUE_BLOCKED, &[queue]),
            waited: histogram(&of::QUEUE_WAIT_SECONDS, &[queue]),
            requests: histogram(&of::QUEUE_BATCH_REQUESTS, &[queue]),
            split: counter(&of::QUEUE_SPLIT, &[queue]),
            panics: counter(&of::QUEUE_PANICS, &[queue]),
            helped: counter(&of::QUEUE_HELPED, &[queue]),
            workers: workers.iter().map(worker).collect(),
        }
    }
}

impl Deref for Counted {
    type Target = BatchStats;

    fn deref(&self) -> &BatchStats {
        &self.stats
    }
}

impl Counted {
    /// Returns empty figures of a queue with this name.
    pub(super) fn new(queue: &str, workers: Vec<String>, capacity: usize) -> Self {
        let meters = Meters::new(queue, &workers);
        let stats = BatchStats::new(workers, capacity);
        meters.depth.show(&stats.depth);
        Self { stats, meters }
    }

    /// Counts one more waiting request.
    pub(super) fn enter(&mut self) {
        self.stats.enter();
        self.meters.submitted.increment(1);
        self.meters.depth.show(&self.stats.depth);
    }

    /// Counts fewer waiting requests.
    pub(super) fn leave(&mut self, count: usize) {
        self.stats.leave(count);
        self.meters.depth.show(&self.stats.depth);
    }

    pub(super) fn refuse(&mut self, full: bool) {
        self.stats.refuse(full);
        self.meters.refused.increment(1);
        self.meters.depth.show(&self.stats.depth);
    }

    /// Counts a submitter that waits for room.
    pub(super) fn block(&mut self) {
        self.stats.blocked += 1;
        self.meters.blocked.increment(1);
    }

    /// Counts a ticket that was dropped or cancelled before its batch began.
    pub(super) fn cancel(&mut self) {
        self.stats.cancelled += 1;
        self.meters.cancelled.increment(1);
    }

    /// Counts a request that was given up when the queue closed.
    pub(super) fn give_up(&mut self) {
        self.stats.closed += 1;
        self.meters.closed.increment(1);
    }

    /// Counts a batch that another worker took over.
    pub(super) fn help(&mut self) {
        self.stats.helped += 1;
        self.meters.helped.increment(1);
    }

    /// Counts a request whose batch begins.
    pub(super) fn begin(&mut self, waited: Duration) {
        self.stats.begin(waited);
        self.meters.waited.record(waited);
    }

    /// Counts a finished batch of a worker.
    pub(super) fn end(&mut self, worker: usize, tally: &Tally, predicted: Duration) {
        self.stats.end(worker, tally, predicted);
        let meters = &self.meters;
        meters.answered.increment(tally.answered);
        meters.failed.increment(tally.failed);
        for &size in &tally.sizes {
            meters.requests.record(size as f64);
        }
        meters.split.increment(u64::from(tally.split));
        meters.panics.increment(tally.panics);
        if let Some([took, was_predicted]) = meters.workers.get(worker) {
            took.record(tally.busy);
            was_predicted.record(predicted);
        }
    }
}
