#![doc = include_str!("../README.md")]
#![no_std]

pub mod digits;
#[cfg(feature = "qemu")]
pub mod exit;
#[cfg(feature = "qemu")]
pub mod image;
mod no_panic;
#[cfg(feature = "qemu")]
pub mod report;
#[cfg(feature = "qemu")]
pub mod stack;
#[cfg(feature = "qemu")]
pub mod text;
