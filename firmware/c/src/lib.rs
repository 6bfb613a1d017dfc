#![doc = include_str!("../README.md")]
#![no_std]
#![allow(
    clippy::missing_safety_doc,
    reason = "the page above states once what every function asks of its caller; what can be checked is checked"
)]

// On a desktop, std provides the panic handler; on bare metal `panic` does.
#[cfg(not(target_os = "none"))]
extern crate std;

mod arena;
mod assign;
mod buffer;
mod digest;
mod kmeans;
mod network;
mod online;
#[cfg(target_os = "none")]
mod panic;
mod quantize;
mod status;
mod version;

pub use arena::*;
pub use assign::*;
pub use digest::*;
pub use kmeans::*;
pub use network::*;
pub use online::*;
pub use quantize::*;
pub use status::*;
pub use version::*;
