//! The reference engine: plain loops over the caller's slices.
//!
//! Each operation is a function over slices in a file of its own; [`Tensor`] holds the slices of one
//! quantization as the drivers' problem. Other engines must give the bits of these functions.

mod affine;
pub mod cluster;
mod dot;
mod engine;
pub mod linear;
mod magnitudes;
mod palette;
mod search;
mod tensor;
mod ternary;

pub use affine::affine;
pub use cluster::Clusters;
pub use dot::{dot, norm, ternary_dot};
pub use engine::Scalar;
pub use linear::Only;
pub use magnitudes::{magnitudes, read_magnitudes};
pub use search::Base;
pub use tensor::Tensor;
pub use ternary::ternary;
