#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(test)]
extern crate std;

pub mod bus;
pub mod digits;
pub mod motion;
pub mod node;
pub mod story;

#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod clock;
#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod exit;
#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod image;
#[cfg(all(feature = "qemu", feature = "defmt", target_os = "none"))]
mod log;
mod no_panic;
#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod report;
#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod stack;
#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod suite;
#[cfg(all(feature = "qemu", target_os = "none"))]
pub mod text;

// Links its critical sections, which no program names.
#[cfg(all(feature = "qemu", target_arch = "arm", target_os = "none"))]
use cortex_m as _;
#[cfg(all(feature = "qemu", target_arch = "riscv32"))]
use riscv as _;

/// Makes a function the program. Its `static mut` items become its own.
#[cfg(all(feature = "qemu", target_arch = "arm", target_os = "none"))]
pub use cortex_m_rt::entry;
/// Makes a function the program.
#[cfg(all(feature = "qemu", target_arch = "riscv32"))]
pub use riscv_rt::entry;
