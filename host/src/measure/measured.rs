//! Results of measurements.

use serde::Serialize;

use super::case::Case;
use super::contender;
use super::memory::Growth;
use super::work::{Arithmetic, Bound};

/// The result of a contender for a case. In serialized form, times are in seconds and rates per second.
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
    /// Number of threads; 0 on a [`super::Device`].
    pub threads: usize,
    /// True if it ran on a [`super::Device`], whose ceiling is a copy there: multiply-adds do not count for it.
    pub device: bool,
    /// The best time.
    pub seconds: f64,
    /// The median time.
    pub median_seconds: f64,
    /// Number of samples.
    pub samples: usize,
    /// Values per second at the best time.
    pub values_per_second: f64,
    /// Bytes that any implementation must move.
    pub bytes: usize,
    /// Bytes per second at the best time.
    pub bytes_per_second: f64,
    /// Multiply-adds that any implementation must do; 0 for other kinds of work.
    pub products: u64,
    /// The type of the products.
    pub arithmetic: Arithmetic,
    /// Multiply-adds per second at the best time.
    pub products_per_second: f64,
    /// The minimum time by the ceilings of this machine.
    pub attainable_seconds: f64,
    /// The ceiling that determines it.
    pub bound: Bound,
    /// The minimum time divided by the best time: 1 is the roofline.
    pub roofline: f64,
    /// The first contender's best time divided by this one's.
    pub speedup: f64,
    /// Maximum resident memory of the process during the first run, including inputs; `None` if the system does not
    /// report it.
    pub peak_memory: Option<u64>,
    /// Growth of that memory by the run: outputs that are written for the first time, and scratch, less reused freed
    /// memory.
    pub added_memory: Option<u64>,
}

/// The contender of a row of results.
pub(super) struct Row {
    pub(super) engine: &'static str,
    pub(super) backend: &'static str,
    pub(super) threads: usize,
    pub(super) device: bool,
}

impl Measured {
    /// Returns a row of results. Samples are sorted, and the ceiling is the minimum time with its reason.
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

    /// Returns the contender, formatted like [`Contender`](super::Contender).
    pub fn contender(&self) -> String {
        contender::name(self.engine, self.backend, self.threads)
    }
}
