//! Low-bit numbers without std, without a heap: the number rules first.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod number;

pub use half::{bf16, f16};
