//! Figures of the work done: calls, elements, bytes and time of each operation on each engine, predicted against
//! actual; and live, where the time goes ([`Monitor`]).

mod bottleneck;
mod counters;
mod flights;
mod interval;
mod monitor;
mod recorder;
mod row;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::{Bound, Engine, Operation};

pub use crate::observe::LATENCIES;
pub use bottleneck::{Bottlenecks, Share};
pub(super) use counters::{Call, Counters};
pub(super) use flights::Flights;
pub use monitor::Monitor;
pub(super) use row::Row;

/// The work of a dispatcher since it was made.
///
/// Calls that other threads are making may be counted in some fields and not yet in others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Calls done.
    pub calls: u64,
    /// Seconds in these calls, of all threads together.
    pub seconds: f64,
    /// Elements in these calls.
    pub elements: u64,
    /// Minimum of bytes that they read and wrote.
    pub bytes: u64,
    /// Calls with an input that every engine refuses.
    pub refused: u64,
    /// Calls that one engine failed at and another finished.
    pub fallbacks: u64,
    /// Each operation on each engine that finished a call or failed at one.
    pub engines: Vec<EngineMetrics>,
}

/// One operation on one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineMetrics {
    /// The operation.
    pub operation: Operation,
    /// The engine.
    pub engine: Engine,
    /// Calls done.
    pub calls: u64,
    /// Seconds in these calls.
    pub seconds: f64,
    /// Seconds per call.
    pub average_seconds: f64,
    /// Elements in these calls.
    pub elements: u64,
    /// Minimum of bytes that they read and wrote.
    pub bytes: u64,
    /// Multiply-adds in these calls, or elements if nothing is multiplied.
    pub work: u64,
    /// Predicted seconds of these calls; for flows, those of the engine's part.
    pub predicted_seconds: f64,
    /// Calls that were whole flows ([`Job::flow`](super::Job::flow)).
    pub flows: u64,
    /// Seconds of these flows, including files and floats.
    pub flow_seconds: f64,
    /// Mean absolute error of the predictions of calls that are no flows, as a part of their mean time; 0 is exact.
    pub error: f64,
    /// Calls that were predicted to spend most of their time starting.
    pub launch_bound: u64,
    /// Calls that were predicted to spend most of their time on copies to the engine and back.
    pub transfer_bound: u64,
    /// Calls that were predicted to spend most of their time reading and writing.
    pub memory_bound: u64,
    /// Calls that were predicted to spend most of their time computing.
    pub compute_bound: u64,
    /// The seconds of these calls.
    pub bound_seconds: BoundSeconds,
    /// Calls that it failed at and another engine finished.
    pub failures: u64,
    /// Calls that it finished after another engine had failed.
    pub finished: u64,
    /// Number of calls up to each time of [`LATENCIES`], then of the longer ones.
    pub latencies: Vec<u64>,
}

/// Seconds that calls took, by the largest predicted part of each call; calls without a prediction are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BoundSeconds {
    /// Of calls that mostly start.
    pub launch: f64,
    /// Of calls that mostly copy to the engine and back.
    pub transfer: f64,
    /// Of calls that mostly read and write.
    pub memory: f64,
    /// Of calls that mostly compute.
    pub compute: f64,
}

impl BoundSeconds {
    /// Returns the seconds of one kind.
    pub const fn of(&self, bound: Bound) -> f64 {
        match bound {
            Bound::Launch => self.launch,
            Bound::Transfer => self.transfer,
            Bound::Memory => self.memory,
            Bound::Compute => self.compute,
        }
    }

    pub(super) const fn of_mut(&mut self, bound: Bound) -> &mut f64 {
        match bound {
            Bound::Launch => &mut self.launch,
            Bound::Transfer => &mut self.transfer,
            Bound::Memory => &mut self.memory,
            Bound::Compute => &mut self.compute,
        }
    }

    /// Returns the kind with the most seconds; `None` if there are none.
    pub fn most(&self) -> Option<Bound> {
        let known = Bound::ALL.into_iter().filter(|&bound| self.of(bound) > 0.0);
        known.max_by(|&a, &b| self.of(a).total_cmp(&self.of(b)))
    }
}

impl EngineMetrics {
    /// Returns the seconds of the calls that are compared with their predictions: all but flows.
    pub(super) fn judged_seconds(&self) -> f64 {
        interval::less(self.seconds, self.flow_seconds)
    }

    /// Returns the seconds that the predictions of these were off.
    pub(super) fn off_seconds(&self) -> f64 {
        self.error * self.judged_seconds()
    }
}

impl Metrics {
    /// Returns the figures as indented JSON.
    pub fn to_json(&self) -> String {
        // Numbers, names and lists: nothing in it can fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Returns the figures of an operation on an engine, if there are any.
    pub fn of(&self, operation: Operation, engine: Engine) -> Option<&EngineMetrics> {
        let mut all = self.engines.iter();
        all.find(|it| (it.operation, it.engine) == (operation, engine))
    }
}
