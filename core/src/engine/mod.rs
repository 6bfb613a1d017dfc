//! The traits between the drivers, written once here, and the engines that do the hot inner steps.
//!
//! An engine holds the bulk data of a **problem** where it wants it (slices for [`crate::scalar`],
//! threads' tiles on a host, device buffers on a GPU). Only scalars and small tables cross. Every engine must
//! give the bits of [`crate::scalar`]; [`crate::conformance`] says whether it does.

mod block;
mod palette;
mod quantize;

pub use block::BlockEngine;
pub use palette::PaletteEngine;
pub use quantize::{MagnitudeBin, MagnitudeSpan, Output, QuantizeEngine, QuantizeProblem};
