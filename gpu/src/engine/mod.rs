//! The engine on CUDA devices.
//!
//! [`Cuda`] is one device with a pool of its memory. Data goes there once ([`Cuda::upload`]), stays as long as its
//! [`DeviceBuffer`] lives, and is worked on by kernels of [`tercet_kernels`], which the driver compiles when they are first used.
//! Their arithmetic is that of [`tercet_core`]: integers, and floats in one stated order, so the bits are the same.
//!
//! # Failures
//!
//! No driver, a broken or an old one, no device: an [`CudaError`] with one line for the user, never a panic. After
//! [`CudaError::OutOfMemory`] the engine is as it was: [`Cuda::in_chunks`] goes on with half of a chunk, and where even the least does not
//! fit, the CPU's engines do the same work. After [`CudaError::Lost`] the device is lost to the process.
//!
//! # Threads
//!
//! [`Cuda`], buffers and graphs may be sent to other threads. An engine does one thing at a time (`&mut`); several work side by side.
//! Dropping is safe from any thread and at any time. [`device_count`], [`device_info`] and [`driver_version`] may be called from any thread.

mod api;
mod block;
mod chunks;
pub mod cluster;
mod context;
mod device;
mod driver;
mod error;
mod graph;
mod info;
mod launch;
mod linear;
mod memory;
mod modules;
mod palette;
mod ptx;
mod quantize;
mod search;
mod staging;
mod stream;
mod watch;
mod worker;

pub use block::DeviceBlocks;
pub use chunks::{Chunks, Item};
pub use device::{Cuda, CudaOptions};
pub use driver::{NEEDED, device_count, driver_version};
pub use error::{CudaError, Status, Version};
pub use graph::Graph;
pub use info::{DeviceInfo, device_info};
pub use launch::{Argument, Grid};
pub use linear::{DeviceActivations, DeviceLayer};
pub use memory::{DeviceBuffer, MemoryStats};
pub use palette::DevicePalette;
pub use quantize::{CudaTensor, DeviceCodes};
pub use search::Base;
pub use watch::Watch;
