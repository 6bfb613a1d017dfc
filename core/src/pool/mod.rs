//! Memory in fixed pools, for programs without a heap.

mod stats;

pub use stats::{Full, Stats};
