#![doc = include_str!("../README.md")]
#![no_std]

pub mod board;
pub mod counter;
pub mod layers;
pub mod memory;
mod nops;
#[cfg(feature = "pools")]
pub mod pools;
pub mod run;
