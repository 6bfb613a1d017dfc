#![doc = include_str!("../README.md")]
#![no_std]

pub mod exit;
pub mod image;
mod no_panic;
pub mod report;
pub mod stack;
pub mod text;
