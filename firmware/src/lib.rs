#![doc = include_str!("../README.md")]
#![no_std]

pub mod exit;
pub mod image;
mod no_panic;
pub mod report;
pub mod stack;
pub mod text;

// Its critical sections, which no program names.
#[cfg(target_arch = "arm")]
use cortex_m as _;
#[cfg(target_arch = "riscv32")]
use riscv as _;

/// Makes a function the program, with its `static mut` items its own.
#[cfg(target_arch = "arm")]
pub use cortex_m_rt::entry;
/// Makes a function the program.
#[cfg(target_arch = "riscv32")]
pub use riscv_rt::entry;
