//! The traits between the drivers, which are written once in this crate, and the engines, which do the hot inner
//! steps.
//!
//! An engine holds the bulk data of a **problem** in its own form (slices for [`crate::scalar`], threads' tiles on a
//! host, device buffers on a GPU). Drivers and engines exchange only scalars and small tables. Every engine must
//! return the same bits as [`crate::scalar`]; [`crate::conformance`] checks this.

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
pub use cluster::{
    Assigned, BufferLengths, Buffers, ClusterEngine, ClusterProblem, Farthest, Shape,
};
pub use linear::LinearEngine;
pub use model::ModelEngine;
pub(crate) use model::{GROUP, PART};
pub use palette::PaletteEngine;
pub use quantize::{MagnitudeBin, MagnitudeSpan, Output, QuantizeEngine, QuantizeProblem};
pub use refused::Refused;
pub use search::{BaseQuery, BaseScore, SearchBase, SearchEngine};
pub use train::{TrainEngine, WeightScratch};

/// An engine that supports every operation. The conformance suite runs on it.
pub trait Engine:
    QuantizeEngine + BlockEngine + ClusterEngine + SearchEngine + PaletteEngine + ModelEngine
{
}

impl<E: QuantizeEngine + BlockEngine + ClusterEngine + SearchEngine + PaletteEngine + ModelEngine>
    Engine for E
{
}
