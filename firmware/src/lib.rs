#![doc = include_str!("../README.md")]
#![no_std]

pub mod exit;
pub mod stack;
