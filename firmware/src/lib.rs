#![doc = include_str!("../README.md")]
#![no_std]

pub mod motion;

#[cfg(target_arch = "arm")]
pub mod exit;
#[cfg(target_arch = "arm")]
pub mod image;
#[cfg(target_arch = "arm")]
mod no_panic;
#[cfg(target_arch = "arm")]
pub mod report;
#[cfg(target_arch = "arm")]
pub mod stack;
#[cfg(target_arch = "arm")]
pub mod text;
