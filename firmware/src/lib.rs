#![doc = include_str!("../README.md")]
#![no_std]

pub mod clock;
pub mod exit;
pub mod image;
#[cfg(feature = "defmt")]
mod log;
mod no_panic;
pub mod report;
pub mod stack;
pub mod text;

/// Makes a function the program, with its `static mut` items its own.
#[cfg(target_arch = "arm")]
pub use cortex_m_rt::entry;
/// Makes a function the program.
#[cfg(target_arch = "riscv32")]
pub use riscv_rt::entry;
