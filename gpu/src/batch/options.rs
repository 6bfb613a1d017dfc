//! How a queue groups requests.

use std::time::Duration;

use super::StartError;

/// How a queue groups requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// Requests of a batch, at most: at least 1.
    pub max_size: usize,
    /// How long a request waits for others of its kind. 0: a batch begins as soon as a worker is free, with what waits then.
    pub max_wait: Duration,
    /// Requests that may wait, of all kinds, batches that have not begun included: at least 1. With requests and answers of bounded
    /// size it bounds the queue's memory; each worker has at most one batch beside.
    pub capacity: usize,
    /// What the queue is called where it is recorded ([`crate::observe`]). Figures of queues of one name are added up, but for how many
    /// requests wait, where the last to change counts.
    pub name: &'static str,
}

impl Default for BatchOptions {
    /// Batches of 64 after half a millisecond, room for 4096; the name is "queue".
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
