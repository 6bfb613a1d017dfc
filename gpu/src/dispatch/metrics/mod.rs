//! What was done: calls, elements, bytes and time of each operation on each engine, predicted against actual; and live, what the time goes
//! to ([`Monitor`]).

mod bottleneck;
mod changes;
mod counters;
mod flights;
mod interval;
mod monitor;
mod prometheus;
mod recorder;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::{Bound, Engine, Operation};

pub use crate::observe::LATENCIES;
pub use bottleneck::{Bottlenecks, Share};
pub(super) use counters::{Call, Counters};
pub(super) use flights::Flights;
pub use monitor::Monitor;

/// What a dispatcher has done since it was made.
///
/// Calls that go on in other threads may be counted in some fields and not yet in others.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Calls done.
    pub calls: u64,
    /// Seconds in them, of all threads together.
    pub seconds: f64,
    /// Elements in them.
    pub elements: u64,
    /// Bytes that they read and wrote at least.
    pub bytes: u64,
    /// Calls whose input every engine refuses.
    pub refused: u64,
    /// Calls that an engine failed at and another finished.
    pub fallbacks: u64,
    /// Each operation on each engine that did or failed at any.
    pub engines: Vec<EngineMetrics>,
}

/// An operation on an engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EngineMetrics {
    /// The operation.
    pub operation: Operation,
    /// The engine.
    pub engine: Engine,
    /// Calls done.
    pub calls: u64,
    /// Seconds in them.
    pub seconds: f64,
    /// Seconds a call.
    pub average_seconds: f64,
    /// Elements in them.
    pub elements: u64,
    /// Bytes that they read and wrote at least.
    pub bytes: u64,
    /// Multiply-adds in them, or elements where nothing is multiplied.
    pub work: u64,
    /// Seconds that were predicted for them, of flows for the engine's part.
    pub predicted_seconds: f64,
    /// Calls that were whole flows ([`Job::flow`](super::Job::flow)).
    pub flows: u64,
    /// Seconds in these, files and floats with them.
    pub flow_seconds: f64,
    /// Mean of how far a call that was no flow was from its prediction, in parts of the mean time; 0 is exact.
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
    /// Calls that it failed at, and others finished.
    pub failures: u64,
    /// Calls that it finished after another had failed.
    pub finished: u64,
    /// Calls by their time: those up to each of [`LATENCIES`], and the longer ones.
    pub latencies: Vec<u64>,
}

/// Seconds that calls took, each call's by what most of it was predicted to go to; calls without a prediction are in none.
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
    /// Those of one kind.
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

    /// What most of them went to; none where there are none.
    pub fn most(&self) -> Option<Bound> {
        let known = Bound::ALL.into_iter().filter(|&bound| self.of(bound) > 0.0);
        known.max_by(|&a, &b| self.of(a).total_cmp(&self.of(b)))
    }
}

impl EngineMetrics {
    /// Seconds of the calls that are held against their predictions: all but flows.
    pub(super) fn judged_seconds(&self) -> f64 {
        interval::less(self.seconds, self.flow_seconds)
    }

    /// Seconds that these were off.
    pub(super) fn off_seconds(&self) -> f64 {
        self.error * self.judged_seconds()
    }
}

impl Metrics {
    /// As JSON, indented.
    pub fn to_json(&self) -> String {
        // Numbers, names and lists: there is nothing in it that could fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// What an operation did on an engine, if anything.
    pub fn of(&self, operation: Operation, engine: Engine) -> Option<&EngineMetrics> {
        let mut all = self.engines.iter();
        all.find(|it| (it.operation, it.engine) == (operation, engine))
    }
}
