//! Clustering by plain loops.

mod accumulator;
mod assign;
mod clusters;
mod passes;
mod sums;

pub use accumulator::Accumulator;
pub use assign::{Nearest, nearest, norms, squared_distance};
pub use clusters::{Clusters, check};
pub use passes::{farthest, measure, pick, potential, shorten};
pub use sums::{accumulate, fade, update};
