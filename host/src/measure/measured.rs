//! What was measured.

use serde::Serialize;

use super::case::Case;
use super::contender;
use super::memory::Growth;
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
    /// `scalar` or `threads`, or the name of a [`super::Guest`] or a [`super::Device`].
    pub engine: &'static str,
    /// The instruction set; `guest` for a [`super::Guest`], and its name again for a [`super::Device`].
    pub backend: &'static str,
    /// How many threads; 0 on a [`super::Device`].
    pub threads: usize,
    /// Whether it ran on a [`super::Device`], whose ceiling is a copy there: multiply-adds do not count for it.
    pub device: bool,
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
    /// Resident memory of the process at its largest during the first run, inputs included; `None` where the system does not
    /// tell.
    pub peak_memory: Option<u64>,
    /// By how much that run raised it: outputs that are first written, and scratch, less what freed memory served.
    pub added_memory: Option<u64>,
}

/// Who a row of results is about.
pub(super) struct Row {
    pub(super) engine: &'static str,
    pub(super) backend: &'static str,
    pub(super) threads: usize,
    pub(super) device: bool,
}

impl Measured {
    /// A row of results; samples rise, and the ceiling is the least time with what sets it.
    pub(super) fn new(
        case: &Case,
        row: Row,
        samples: &[f64],
        growth: Option<Growth>,
        (attainable, bound): (f64, Bound),
        baseline: f64,
    ) -> Self {
        let work = &case.work;
        let seconds = samples[0];
        Self {
            operation: case.operation.clone(),
            size: case.size.clone(),
            values: work.values,
            engine: row.engine,
            backend: row.backend,
            threads: row.threads,
            device: row.device,
            seconds,
            median_seconds: samples[samples.len() / 2],
            samples: samples.len(),
            values_per_second: work.values as f64 / seconds,
            bytes: work.bytes(),
            bytes_per_second: work.bytes() as f64 / seconds,
            products: work.products,
            arithmetic: work.arithmetic,
            products_per_second: work.products as f64 / seconds,
            attainable_seconds: attainable,
            bound,
            roofline: attainable / seconds,
            speedup: baseline / seconds,
            peak_memory: growth.map(|growth| growth.peak),
            added_memory: growth.map(|growth| growth.added),
        }
    }

    /// The contender, as [`Contender`](super::Contender) shows itself.
    pub fn contender(&self) -> String {
        contender::name(self.engine, self.backend, self.threads)
    }
}
