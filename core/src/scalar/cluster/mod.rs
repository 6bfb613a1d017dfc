//! Clustering with plain loops.

mod accumulator;
mod clusters;
mod norms;
mod passes;
mod sums;

pub use accumulator::Accumulator;
pub use clusters::{Clusters, check};
pub use norms::norms;
pub use passes::{farthest, measure, pick, potential, shorten};
pub use sums::{accumulate, fade, update};
