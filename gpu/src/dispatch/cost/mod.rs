//! What a job costs on an engine: `launch + transfer + max(bytes / bandwidth(bytes), work / rate(work))`.

mod curve;
mod fit;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use curve::{Curve, CurveError};
pub use fit::Sample;

use super::job::{Job, Place};

/// What an operation costs on an engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds before anything is done: a call's own work, waking up threads, starting kernels.
    #[serde(deserialize_with = "seconds")]
    pub launch: f64,
    /// Seconds by bytes read and written.
    pub memory: Curve,
    /// Seconds by work; none where bytes say it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Curve>,
    /// Seconds by bytes that cross to the engine's memory and back; none where it works in the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Curve>,
}

/// A time from a file: not below 0, and finite.
fn seconds<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?;
    if seconds >= 0.0 && seconds.is_finite() {
        Ok(seconds)
    } else {
        Err(serde::de::Error::custom(CurveError::Seconds(seconds)))
    }
}

impl Cost {
    /// A cost of constants: seconds, bytes a second, work a second.
    pub fn constant(launch: f64, bandwidth: f64, rate: f64) -> Self {
        Self {
            launch,
            memory: Curve::constant(bandwidth),
            compute: Some(Curve::constant(rate)),
            transfer: None,
        }
    }

    /// With data that crosses to the engine at so many bytes a second.
    pub fn with_transfer(mut self, bandwidth: f64) -> Self {
        self.transfer = Some(Curve::constant(bandwidth));
        self
    }

    /// What a job should take. Never negative, and never less for a job with more of anything.
    pub fn predict(&self, job: &Job) -> Prediction {
        self.predict_with(job, &Logs::of(job))
    }

    /// As [`Cost::predict`], with the logarithms that all engines need of the job.
    pub(super) fn predict_with(&self, job: &Job, logs: &Logs) -> Prediction {
        let by = |curve: Option<&Curve>, amount: u64, log: f64| match curve {
            Some(curve) if amount > 0 => curve.seconds_of(amount, log),
            _ => 0.0,
        };
        let transfer = match job.place {
            Place::Host => by(self.transfer.as_ref(), job.bytes(), logs.bytes),
            Place::Device => 0.0,
        };
        Prediction {
            launch: self.launch,
            transfer,
            memory: by(Some(&self.memory), job.bytes(), logs.bytes),
            compute: by(self.compute.as_ref(), job.work, logs.work),
        }
    }
}

/// Logarithms of a job's amounts.
pub(super) struct Logs {
    bytes: f64,
    work: f64,
}

impl Logs {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            bytes: (job.bytes() as f64).ln(),
            work: (job.work as f64).ln(),
        }
    }
}

/// The parts of a predicted time, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Before anything is done.
    pub launch: f64,
    /// Data on its way to the engine and back.
    pub transfer: f64,
    /// Bytes read and written.
    pub memory: f64,
    /// Work done, beside the bytes.
    pub compute: f64,
}

/// What most of a time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Starting.
    Launch,
    /// Copies to an engine and back.
    Transfer,
    /// Reading and writing.
    Memory,
    /// Computing.
    Compute,
}

impl Bound {
    /// Each of them.
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
    /// All of it: memory and arithmetic go on side by side.
    pub const fn total(&self) -> f64 {
        self.launch + self.transfer + self.memory.max(self.compute)
    }

    /// The largest part.
    pub fn bound(&self) -> Bound {
        let (busy, by) = if self.compute > self.memory {
            (self.compute, Bound::Compute)
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
}
