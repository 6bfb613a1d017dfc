//! One operation on one engine, in an interval: calls that ended, and calls under way.

use super::interval::less;
use super::{BoundSeconds, EngineMetrics};
use crate::dispatch::{Bound, Engine, Job, Operation};

/// The facts about one operation on one engine in an interval.
pub(in crate::dispatch) struct Row {
    /// Calls that ended.
    pub(in crate::dispatch) done: EngineMetrics,
    /// Calls still running.
    pub(in crate::dispatch) running: usize,
    /// Seconds within the interval.
    pub(in crate::dispatch) seconds: f64,
    pub(in crate::dispatch) bounds: BoundSeconds,
    /// A running call.
    job: Option<Job>,
}

impl EngineMetrics {
    /// Returns an empty row.
    pub(super) fn none(operation: Operation, engine: Engine) -> Self {
        Self {
            operation,
            engine,
            calls: 0,
            seconds: 0.0,
            average_seconds: 0.0,
            elements: 0,
            bytes: 0,
            work: 0,
            predicted_seconds: 0.0,
            flows: 0,
            flow_seconds: 0.0,
            error: 0.0,
            launch_bound: 0,
            transfer_bound: 0,
            memory_bound: 0,
            compute_bound: 0,
            bound_seconds: BoundSeconds::default(),
            failures: 0,
            finished: 0,
            latencies: Vec::new(),
        }
    }
}

impl Row {
    pub(in crate::dispatch) fn new(done: EngineMetrics) -> Self {
        Self {
            running: 0,
            seconds: done.seconds,
            bounds: done.bound_seconds,
            job: None,
            done,
        }
    }

    /// Adds a running call.
    pub(super) fn begin(&mut self, job: Job) {
        self.running += 1;
        self.job = Some(job);
    }

    /// Adds seconds that a call was running.
    pub(super) fn add(&mut self, bound: Option<Bound>, seconds: f64) {
        self.seconds += seconds;
        if let Some(bound) = bound {
            *self.bounds.of_mut(bound) += seconds;
        }
    }

    /// Calls that end during the observation may leave slightly negative times, which become 0.
    pub(super) fn settle(&mut self) {
        self.seconds = less(self.seconds, 0.0);
        for bound in Bound::ALL {
            let seconds = self.bounds.of_mut(bound);
            *seconds = less(*seconds, 0.0);
        }
    }

    /// Returns the mean call.
    pub(in crate::dispatch) fn mean(&self) -> Option<Job> {
        let it = &self.done;
        if it.calls == 0 {
            return self.job;
        }
        let bytes = it.bytes / it.calls;
        Some(Job {
            work: it.work / it.calls,
            flow: it.calls == it.flows,
            ..Job::each(it.operation, it.elements / it.calls, bytes, 0)
        })
    }
}
