//! The reference engine, over the caller's slices.
//!
//! Each operation is a function over slices in its own file. [`Tensor`] holds the slices of one quantization as the
//! drivers' problem. Other engines must return the same bits as these functions. Their inner loops are those of
//! [`crate::arch`]: plain ones, or kernels for the target processor.

pub mod cluster;
mod engine;
mod linear;
mod magnitudes;
mod palette;
mod search;
mod tensor;
mod ternary;

pub use cluster::Clusters;
pub use engine::Scalar;
pub use linear::Only;
pub use magnitudes::{magnitudes, read_magnitudes};
pub use search::Base;
pub use tensor::Tensor;
pub use ternary::ternary;
