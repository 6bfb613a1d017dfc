#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(test)]
extern crate std;

pub mod motion;

#[cfg(target_os = "none")]
pub mod clock;
#[cfg(target_os = "none")]
pub mod exit;
#[cfg(target_os = "none")]
pub mod image;
#[cfg(all(feature = "defmt", target_os = "none"))]
mod log;
#[cfg(target_os = "none")]
mod no_panic;
#[cfg(target_os = "none")]
pub mod report;
#[cfg(target_os = "none")]
pub mod stack;
#[cfg(target_os = "none")]
pub mod text;
