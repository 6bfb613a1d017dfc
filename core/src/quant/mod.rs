//! Quantizers: they convert a group of floats to ternary, int4 or int8 codes and a scale.
//!
//! A quantizer runs in three steps on every machine: the engine's `stats`, a [`Plan`] computed here from these few
//! numbers, and the engine's `apply`. See [`crate::engine`].

pub mod activations;
pub mod adaptive;
mod apply;
pub mod calibrate;
mod decode;
mod driver;
mod error;
pub mod fp8;
mod grid;
mod histogram;
pub mod int4;
pub mod int8;
mod measure;
pub mod optimal;
mod plan;
mod rule;
mod search;
mod sort;
pub mod ternary;
mod threshold;

pub use decode::{Codes, dequantize};
pub use driver::{Method, Report, quantize, quantize_in_order};
pub use error::QuantError;
pub use grid::Grid;
pub use histogram::{Bucket, HOST_BITS, Histogram, SMALL_BITS};
pub use measure::{Comparison, Measures, RowSums};
pub use plan::{Applied, Groups, Plan};
pub use rule::{Rule, ScaleRule};
