//! The one change that would help most: the one that saves the most time, of all changes that the cost model knows.

use super::interval::less;
use super::{BoundSeconds, EngineMetrics, Metrics};
use crate::dispatch::recommend::Machine;
use crate::dispatch::{Advice, Bound, Engine, Job, Location, Operation, Prediction, Profile};

/// Returns why an engine did not do a job.
pub(super) type Why<'a> = &'a dyn Fn(&Job, Engine) -> String;

/// Another engine is suggested if it takes less than this part of the time.
const FASTER: f64 = 0.8;
/// Requests of a batch, which share one start: the default of a queue.
const BATCH: f64 = 64.0;

/// The facts about one operation on one engine in an interval.
pub(super) struct Row {
    /// Calls that ended.
    pub(super) done: EngineMetrics,
    /// Calls still running.
    pub(super) running: usize,
    /// Seconds within the interval.
    pub(super) seconds: f64,
    pub(super) bounds: BoundSeconds,
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
    pub(super) fn new(done: EngineMetrics) -> Self {
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
    fn mean(&self) -> Option<Job> {
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

    /// Returns all changes that the model knows to help.
    fn changes(&self, machine: &Machine<'_>, why: Why<'_>) -> Vec<Advice> {
        let (operation, engine) = (self.done.operation, self.done.engine);
        let costs = |engine| machine.costs.get(operation, engine);
        let predicted = self
            .mean()
            .and_then(|job| Some((job, costs(engine)?.predict(&job))));
        let Some((job, predicted)) = predicted.filter(|_| self.seconds > 0.0) else {
            return Vec::new();
        };
        // Another engine can change only the engine's part of a flow.
        let seconds = match (self.done.calls, self.done.flows) {
            (0, _) if job.flow => self.seconds.min(predicted.total()),
            (calls, flows) if calls > 0 && calls == flows => {
                self.seconds.min(self.done.predicted_seconds)
            }
            _ => self.seconds,
        };
        let advice = |part: f64, text: String| Advice {
            operation: Some(operation),
            text,
            seconds: seconds * part,
        };
        let mut changes = Vec::new();
        if machine.settings.profile != Profile::Edge {
            let others = Engine::ALL.into_iter().filter(|&other| {
                let reachable = match job.place {
                    Location::Host => other != Engine::Cuda || machine.device,
                    Location::Processor => other != Engine::Cuda,
                    Location::Device => false,
                };
                let able = !job.is_tiled() || other == Engine::Cuda;
                other != engine && reachable && able
            });
            for other in others {
                let Some(cost) = costs(other) else { continue };
                let part = cost.predict(&job).total() / predicted.total();
                if part < FASTER {
                    let reason = why(&job, other);
                    let text = format!(
                        "{other} is predicted to take {:.0} % of the time of {engine}; it was not taken: {reason}",
                        100.0 * part
                    );
                    changes.push(advice(1.0 - part, text));
                }
            }
        }
        changes.extend(
            less_of(self.bounds.most(), &predicted, &job)
                .map(|(part, text)| advice(part, format!("{text}, on {engine}"))),
        );
        changes
    }
}

/// Returns how to reduce the part that limits a job: the part of its time saved, and what to do.
fn less_of(bound: Option<Bound>, predicted: &Prediction, job: &Job) -> Option<(f64, String)> {
    let elements = job.elements;
    let total = predicted.total();
    match bound? {
        Bound::Launch => Some((
            predicted.launch / total * (1.0 - 1.0 / BATCH),
            format!(
                "calls of {elements} elements mostly start: \
                 put several requests into one call (`batch::Queue`)"
            ),
        )),
        Bound::Transfer => Some((
            predicted.transfer / total,
            format!(
                "calls of {elements} elements mostly copy: keep the data on the device (`Dispatcher::resident_points` and its like)"
            ),
        )),
        // Only the caller knows what fewer bytes or less work would save: at most the time beyond the other parts.
        Bound::Memory => Some((
            0.5 * less(predicted.memory, predicted.compute) / total,
            format!(
                "calls of {elements} elements mostly read and write: \
                 a format with half the bits per value moves half the bytes"
            ),
        )),
        Bound::Compute => None,
    }
}

/// Returns the change that saves most seconds of the interval.
pub(super) fn most(
    machine: &Machine<'_>,
    done: &Metrics,
    rows: &[Row],
    why: Why<'_>,
) -> Option<Advice> {
    let known = rows.iter().flat_map(|row| row.changes(machine, why));
    // The time of a call before the interval is no gain within the interval.
    let told = machine.advise(done).into_iter().map(|advice| {
        let about = |row: &&Row| advice.operation.is_none_or(|it| it == row.done.operation);
        let most: f64 = rows.iter().filter(about).map(|row| row.seconds).sum();
        Advice {
            seconds: advice.seconds.min(most),
            ..advice
        }
    });
    let all = known.chain(told).filter(|advice| advice.seconds > 0.0);
    all.max_by(|a, b| a.seconds.total_cmp(&b.seconds))
}
