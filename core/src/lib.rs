#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(test, feature = "std"))]
extern crate std;

#[macro_use]
mod macros;

pub mod arch;
pub mod block;
#[cfg(feature = "std")]
pub mod build_script;
pub mod cluster;
pub mod conformance;
pub mod engine;
pub mod gguf;
pub mod linear;
pub mod model;
pub mod number;
pub mod palette;
pub mod pool;
pub mod quant;
pub mod scalar;
pub mod search;
pub mod train;

pub use block::Format;
pub use cluster::Online;
pub use half::{bf16, f16};
pub use linear::network::Network;
pub use linear::{I8Sym, Layer, Layout, Matrix};
pub use model::Model;
pub use pool::{BlockPool, Ring};
pub use quant::{Groups, Method, Rule, ScaleRule, quantize};
pub use scalar::{Only, Scalar, Tensor};
