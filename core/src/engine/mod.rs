//! The traits between the drivers, written once here, and the engines that do the hot inner steps.
//!
//! An engine holds the bulk data of a **problem** where it wants it (slices for [`crate::scalar`],
//! threads' tiles on a host, device buffers on a GPU). Only scalars and small tables cross. Every engine must
//! give the bits of [`crate::scalar`]; [`crate::conformance`] says whether it does.

mod block;
mod cluster;
mod linear;
mod model;
mod palette;
mod quantize;
mod refused;
mod search;
mod train;

pub use block::BlockEngine;
pub use cluster::{Assigned, Buffers, ClusterEngine, ClusterProblem, Farthest, Shape};
pub use linear::LinearEngine;
pub use model::ModelEngine;
pub(crate) use model::{GROUP, PART};
pub use palette::PaletteEngine;
pub use quantize::{MagnitudeBin, MagnitudeSpan, Output, QuantizeEngine, QuantizeProblem};
pub use refused::Refused;
pub use search::{BaseQuery, BaseScore, SearchBase, SearchEngine};
pub use train::{TrainEngine, WeightScratch};

/// An engine of every operation: what the conformance suite runs.
pub trait Engine:
    QuantizeEngine + BlockEngine + ClusterEngine + SearchEngine + PaletteEngine + ModelEngine
{
}

impl<E: QuantizeEngine + BlockEngine + ClusterEngine + SearchEngine + PaletteEngine + ModelEngine>
    Engine for E
{
}
