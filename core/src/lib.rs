//! Low-bit numbers without std, without a heap: the number rules first.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

#[macro_use]
mod macros;

pub mod block;
pub mod engine;
pub mod gguf;
pub mod number;
pub mod quant;
pub mod scalar;

pub use half::{bf16, f16};
