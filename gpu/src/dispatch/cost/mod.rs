//! The cost of a job on an engine: `launch + items + transfer + max(bytes / bandwidth(bytes), work / rate(work))`.

mod curve;
mod fit;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use curve::{Curve, CurveError};
pub use fit::{Sample, Sweeps};

use super::job::{Job, Location, Operation};

/// The cost of an operation on an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds before any work is done: the overhead of a call, waking up threads, starting kernels.
    #[serde(deserialize_with = "seconds")]
    pub launch: f64,
    /// Seconds by the number of items of a job, beside its bytes and its work; `None` if it has no items or they take
    /// no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Curve>,
    /// Seconds by bytes read and written.
    pub memory: Curve,
    /// Seconds by work; `None` if the bytes determine the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Curve>,
    /// Seconds by bytes copied to the engine's memory and back; `None` if it works in the host's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Curve>,
}

/// Reads a time from a file: finite and not below 0.
fn seconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?;
    if seconds >= 0.0 && seconds.is_finite() {
        Ok(seconds)
    } else {
        Err(serde::de::Error::custom(CurveError::Seconds(seconds)))
    }
}

impl Cost {
    /// Returns a cost of constants: seconds, bytes per second, work per second.
    pub fn constant(launch: f64, bandwidth: f64, rate: f64) -> Self {
        Self {
            launch,
            items: None,
            memory: Curve::constant(bandwidth),
            compute: Some(Curve::constant(rate)),
            transfer: None,
        }
    }

    /// Returns the cost with so many seconds for each item.
    pub fn with_each(mut self, seconds: f64) -> Self {
        self.items = (seconds > 0.0).then(|| Curve::constant(1.0 / seconds));
        self
    }

    /// Returns the cost with copies to the engine at so many bytes per second.
    pub fn with_transfer(mut self, bandwidth: f64) -> Self {
        self.transfer = Some(Curve::constant(bandwidth));
        self
    }

    /// Returns the cost of the same work on equal engines that share it and start in `launch` seconds.
    pub(super) fn shared(&self, launch: f64, engines: usize) -> Self {
        let engines = engines.max(1) as f64;
        let each = |curve: &Curve| curve.divided(engines);
        Self {
            launch,
            items: self.items.as_ref().map(each),
            memory: each(&self.memory),
            compute: self.compute.as_ref().map(each),
            transfer: self.transfer.clone(),
        }
    }

    /// Predicts the time of a job. It is never negative, and never less for a job with more of anything.
    pub fn predict(&self, job: &Job) -> Prediction {
        self.predict_with(job, &Logs::of(job))
    }

    /// Predicts the time of a measured call with its data on the host.
    fn of_sample(&self, sample: &Sample) -> Prediction {
        self.predict(&Job {
            work: sample.work,
            items: sample.items,
            // The operation does not matter here.
            ..Job::each(Operation::Decode, 0, sample.bytes, 0)
        })
    }

    /// As [`Cost::predict`], with the logarithms of the job that all engines need.
    pub(super) fn predict_with(&self, job: &Job, logs: &Logs) -> Prediction {
        let by = |curve: Option<&Curve>, amount: u64, log: f64| match curve {
            Some(curve) if amount > 0 => curve.seconds_of(amount, log),
            _ => 0.0,
        };
        let transfer = match (job.place, &self.transfer) {
            (Location::Host, Some(curve)) if job.held == 0 => {
                by(Some(curve), job.bytes(), logs.bytes)
            }
            (Location::Host, Some(curve)) => curve.seconds(job.bytes().saturating_sub(job.held)),
            _ => 0.0,
        };
        let times = job.times as f64;
        Prediction {
            launch: times * self.launch,
            items: times * by(self.items.as_ref(), job.items, logs.items),
            transfer: times * transfer,
            memory: times * by(Some(&self.memory), job.bytes(), logs.bytes),
            compute: times * by(self.compute.as_ref(), job.work, logs.work),
            apart: 0.0,
        }
    }
}

/// Logarithms of the amounts of a job.
pub(super) struct Logs {
    bytes: f64,
    work: f64,
    items: f64,
}

impl Logs {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            bytes: (job.bytes() as f64).ln(),
            work: (job.work as f64).ln(),
            items: (job.items as f64).ln(),
        }
    }
}

/// The parts of a predicted time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Before any work is done.
    pub launch: f64,
    /// Items of the job, one by one: groups, points, queries, rows.
    pub items: f64,
    /// Copies of data to the engine and back.
    pub transfer: f64,
    /// Bytes read and written.
    pub memory: f64,
    /// Work, beside the bytes.
    pub compute: f64,
    /// Memory or computing that overlaps with neither, because it is of different phases of a call.
    #[serde(skip_serializing_if = "is_none")]
    pub apart: f64,
}

/// True if no time is taken.
fn is_none(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// The largest part of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Starting.
    Launch,
    /// Copies to an engine and back.
    Transfer,
    /// Reading and writing.
    Memory,
    /// Computing, including the time per item.
    Compute,
}

impl Bound {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Launch, Self::Transfer, Self::Memory, Self::Compute];

    /// `launch`, `transfer`, `memory` or `compute`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Transfer => "transfer",
            Self::Memory => "memory",
            Self::Compute => "compute",
        }
    }
}

impl Prediction {
    /// Returns the total: memory and arithmetic overlap.
    pub const fn total(&self) -> f64 {
        self.launch + self.items + self.transfer + self.memory.max(self.compute) + self.apart
    }

    /// Returns the time of one phase after the other.
    pub(super) fn then(&self, next: &Self) -> Self {
        let sum = |part: fn(&Self) -> f64| part(self) + part(next);
        let (memory, compute) = (sum(|it| it.memory), sum(|it| it.compute));
        let busy = sum(|it| it.memory.max(it.compute) + it.apart);
        Self {
            launch: sum(|it| it.launch),
            items: sum(|it| it.items),
            transfer: sum(|it| it.transfer),
            memory,
            compute,
            apart: (busy - memory.max(compute)).max(0.0),
        }
    }

    /// Returns the largest part. Items count as computing, like work.
    pub fn bound(&self) -> Bound {
        let (busy, by) = if self.compute.max(self.items) > self.memory {
            (self.compute.max(self.items), Bound::Compute)
        } else {
            (self.memory, Bound::Memory)
        };
        if self.transfer >= self.launch && self.transfer > busy {
            Bound::Transfer
        } else if self.launch > busy {
            Bound::Launch
        } else {
            by
        }
    }

    /// True if items take more time than anything else.
    pub(super) fn is_of_items(&self) -> bool {
        let others = [self.launch, self.transfer, self.memory, self.compute];
        others.into_iter().all(|other| self.items > other)
    }
}
