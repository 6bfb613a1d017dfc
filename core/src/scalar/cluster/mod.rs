//! Clustering by plain loops.

mod accumulator;
mod assign;
mod clusters;

pub use accumulator::Accumulator;
pub use assign::{Nearest, nearest, norms, squared_distance};
pub use clusters::{Clusters, accumulate, check, fade, update};
