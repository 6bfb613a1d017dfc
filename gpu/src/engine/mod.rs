//! The engine on CUDA devices.
//!
//! [`Cuda`] is one device with a pool of its memory. Data goes there once ([`Cuda::upload`]), stays as long as its
//! [`DeviceBuffer`] lives, and is worked on by kernels of [`tercet_kernels`], which the driver compiles when they are first used.
//! Their arithmetic is that of [`tercet_core`]: integers, and floats in one stated order, so the bits are the same.
//!
//! [`Cudas`] is several devices as one engine, with the same bits again: what is shared, and what crosses between them, is said there.
//!
//! # Failures
//!
//! No driver, a broken or an old one, no device: an [`CudaError`] with one line for the user, never a panic. After
//! [`CudaError::OutOfMemory`] the engine is as it was, and the CPU's engines do the same work. After [`CudaError::Lost`] the device is lost
//! to the process.
//!
//! # Data larger than the device's memory
//!
//! The traits of [`tercet_core::engine`] take slices of the host, of any length. What has no room on the device goes there in parts,
//! which [`Cuda::in_chunks`] and [`Cuda::stream_through`] halve until they fit:
//!
//! | operation | what does not fit |
//! |---|---|
//! | quantizing | passes through in whole groups; a group that is longer than the device's memory by its values, once for each step |
//! | histograms | pass through; their counters stay, 4 · 2^bits bytes |
//! | [`Cuda::dequantize_slices`], blocks | pass through |
//! | search | rows are copied part by part for each call |
//! | layers | rows of weights are copied part by part; all activations must fit |
//! | palettes | groups of rows are copied part by part; each group must fit |
//! | k-means | is [`CudaError::OutOfMemory`]: each of its passes would wait for all points to cross. [`Cudas`] holds more of them |
//! | what stays there ([`Cuda::upload`], [`Cuda::layer`], …) | is [`CudaError::OutOfMemory`] |
//!
//! What passes through is copied in and out beside the kernels. Of search, layers and palettes a part is copied, then worked on: the
//! copy is nearly all of the time.
//!
//! # Tensor cores
//!
//! From compute capability 8.0 on products of int8 are mma's. On 9.0 k-means may use warpgroup products, where [`CudaOptions::tensor_cores`]
//! asks for [`TensorCores::Wgmma`]: no device has run them yet, so each is first tried against its mma ([`Wgmma`]), and they are the default of
//! none before they were timed.
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
mod cudas;
mod device;
mod driver;
mod error;
mod flow;
mod graph;
mod info;
mod launch;
mod linear;
mod memory;
mod meters;
mod model;
mod modules;
mod nccl;
mod palette;
mod ptx;
mod quantize;
mod search;
mod staging;
mod stream;
mod team;
mod timeline;
mod watch;
mod wgmma;

pub use block::DeviceBlocks;
pub use chunks::{Chunks, Item};
pub use cudas::{Cudas, Exchange};
pub use device::{Cuda, CudaOptions};
pub use driver::{NEEDED, device_count, driver_version};
pub use error::{CudaError, Status, Version};
pub use graph::Graph;
pub use info::{DeviceInfo, device_info};
pub use launch::{Argument, Grid};
pub use linear::{CudasLayer, DeviceActivations, DeviceLayer};
pub use memory::{DeviceBuffer, MemoryStats};
pub use palette::{CudasPalette, DevicePalette};
pub use quantize::{CudaTensor, CudasTensor, DeviceCodes};
pub use search::{Base, CudasBase, DeviceRows};
pub use watch::Watch;
pub use wgmma::{TensorCores, Wgmma};
