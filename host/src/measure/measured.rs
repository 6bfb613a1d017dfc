//! What was measured.

use serde::Serialize;

use super::contender;
use super::work::{Arithmetic, Bound};

/// What a contender took for a case. Serialized, times are in seconds and rates a second.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// The operation.
    pub operation: String,
    /// The size of its input, in words.
    pub size: String,
    /// Values in the input.
    pub values: usize,
    /// `scalar` or `threads`, or the name of a [`super::Guest`].
    pub engine: &'static str,
    /// The instruction set; `guest` for a [`super::Guest`].
    pub backend: &'static str,
    /// How many threads.
    pub threads: usize,
    /// The best time.
    pub seconds: f64,
    /// The median time.
    pub median_seconds: f64,
    /// How many were taken.
    pub samples: usize,
    /// Values in the best time.
    pub values_per_second: f64,
    /// Bytes that any implementation must move.
    pub bytes: usize,
    /// Those in the best time.
    pub bytes_per_second: f64,
    /// Multiply-adds that any implementation must do; 0 where the work is of another kind.
    pub products: u64,
    /// What is multiplied.
    pub arithmetic: Arithmetic,
    /// Those in the best time.
    pub products_per_second: f64,
    /// The least time by the ceilings of this machine.
    pub attainable_seconds: f64,
    /// What it is set by.
    pub bound: Bound,
    /// That over the best time: 1 is the roofline.
    pub roofline: f64,
    /// The first contender's time over this one's, best times both.
    pub speedup: f64,
    /// Resident memory of the process at its largest during the first run, inputs included; `None` where the system does not tell.
    pub peak_memory: Option<u64>,
    /// By how much that run raised it: outputs that are first written, and scratch, less what freed memory served.
    pub added_memory: Option<u64>,
}

impl Measured {
    /// The contender, as [`Contender`](super::Contender) shows itself.
    pub fn contender(&self) -> String {
        contender::name(self.engine, self.backend, self.threads)
    }
}
