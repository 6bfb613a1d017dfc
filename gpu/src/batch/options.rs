//! Options of a queue.

use std::time::Duration;

use super::StartError;

/// Options for how a queue groups requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// Maximum number of requests per batch, at least 1.
    pub max_size: usize,
    /// How long a request waits for others of its kind. 0: a batch begins as soon as a worker is free, with the
    /// requests that wait then.
    pub max_wait: Duration,
    /// Maximum number of waiting requests, of all kinds and including batches that have not begun; at least 1. If
    /// requests and answers have a bounded size, this bounds the queue's memory; each worker has at most one more
    /// batch.
    pub capacity: usize,
    /// Name of the queue in recorded figures ([`crate::observe`]). Figures of queues with the same name are added up,
    /// except for the number of waiting requests, where the last change counts.
    pub name: &'static str,
}

impl Default for BatchOptions {
    /// Batches of 64 after half a millisecond, capacity 4096; the name is "queue".
    fn default() -> Self {
        Self {
            max_size: 64,
            max_wait: Duration::from_micros(500),
            capacity: 4096,
            name: "queue",
        }
    }
}

impl BatchOptions {
    pub(super) const fn check(&self) -> Result<(), StartError> {
        let name = match self {
            Self { max_size: 0, .. } => "max_size",
            Self { capacity: 0, .. } => "capacity",
            _ => return Ok(()),
        };
        Err(StartError::Zero { name })
    }
}
