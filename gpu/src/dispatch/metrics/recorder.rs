//! Records the dispatcher's figures through [`crate::observe`].

use std::sync::OnceLock;

use metrics::{Counter, Histogram};

use super::counters::Call;
use crate::dispatch::{Bound, Engine, Job, Operation};
use crate::observe::{counter, histogram, of};

/// Handles, made when they are first needed: a program that never searches has no figures of searches.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    engines: [[OnceLock<Box<Handles>>; Engine::ALL.len()]; Operation::ALL.len()],
    refused: OnceLock<Counter>,
}

/// The handles of an operation on an engine.
#[derive(Debug)]
struct Handles {
    call: Histogram,
    bound: [OnceLock<Histogram>; Bound::ALL.len()],
    predicted: Histogram,
    flow: Histogram,
    off: Histogram,
    elements: Counter,
    bytes: Counter,
    work: Counter,
    failures: Counter,
    finished: Counter,
}

impl Handles {
    fn new(operation: Operation, engine: Engine) -> Self {
        let labels = [operation.name(), engine.name()];
        Self {
            call: histogram(&of::CALL_SECONDS, &labels),
            bound: Default::default(),
            predicted: histogram(&of::PREDICTED_SECONDS, &labels),
            flow: histogram(&of::FLOW_SECONDS, &labels),
            off: histogram(&of::OFF_SECONDS, &labels),
            elements: counter(&of::ELEMENTS, &labels),
            bytes: counter(&of::BYTES, &labels),
            work: counter(&of::WORK, &labels),
            failures: counter(&of::FAILURES, &labels),
            finished: counter(&of::FINISHED, &labels),
        }
    }
}

impl Recorder {
    fn handles(&self, operation: Operation, engine: Engine) -> &Handles {
        let handles = &self.engines[operation as usize][engine as usize];
        handles.get_or_init(|| Box::new(Handles::new(operation, engine)))
    }

    /// Records a finished call.
    pub(super) fn done(&self, call: &Call<'_>) {
        let (operation, engine) = (call.job.operation, call.engine);
        let handles = self.handles(operation, engine);
        let seconds = call.nanoseconds as f64 * 1e-9;
        handles.call.record(seconds);
        handles.elements.increment(call.job.total(|it| it.elements));
        handles.bytes.increment(call.job.total(Job::bytes));
        handles.work.increment(call.job.total(|it| it.work));
        if let Some(prediction) = call.prediction {
            let predicted = prediction.total();
            handles.predicted.record(predicted);
            if !call.job.flow {
                handles.off.record((predicted - seconds).abs());
            }
            let bound = prediction.bound();
            let by = handles.bound[bound as usize].get_or_init(|| {
                let labels = [operation.name(), engine.name(), bound.name()];
                histogram(&of::BOUND_SECONDS, &labels)
            });
            by.record(seconds);
        }
        if call.job.flow {
            handles.flow.record(seconds);
        }
        if call.finished {
            handles.finished.increment(1);
        }
    }

    pub(super) fn failed(&self, operation: Operation, engine: Engine) {
        self.handles(operation, engine).failures.increment(1);
    }

    pub(super) fn refused(&self) {
        let refused = self.refused.get_or_init(|| counter(&of::REFUSED, &[]));
        refused.increment(1);
    }
}
