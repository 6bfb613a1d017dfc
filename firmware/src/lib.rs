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
