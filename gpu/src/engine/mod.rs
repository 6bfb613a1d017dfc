//! The engine on CUDA devices.
//!
//! [`Cuda`] is one device with a pool of its memory. Data is copied to it once ([`Cuda::upload`]) and stays as long as
//! its [`DeviceBuffer`] lives. Kernels of [`tercet_kernels`] process it; the driver compiles them when they are first
//! used. Their arithmetic is that of [`tercet_core`]: integers, and floats in one stated order, so the bits are the
//! same.
//!
//! [`Cudas`] is several devices as one engine, also with the same bits. Its docs describe how work is shared and which
//! data is copied between devices.
//!
//! # Failures
//!
//! A missing, broken or old driver, or a missing device, is a [`CudaError`] with one line for the user, never a panic.
//! After [`CudaError::OutOfMemory`] the engine is unchanged, and the CPU engines can do the same work. After
//! [`CudaError::Lost`] this process cannot use the device any more.
//!
//! # Data larger than the device's memory
//!
//! The traits of [`tercet_core::engine`] take host slices of any length. Data without room on the device is copied
//! there in parts, which [`Cuda::in_chunks`] and [`Cuda::stream_through`] halve until they fit:
//!
//! | operation | data that does not fit |
//! |---|---|
//! | quantizing | passes through in whole groups; a group larger than the device's memory passes through in parts, once for each step |
//! | histograms | pass through; their counters stay, 4 · 2^bits bytes |
//! | [`Cuda::dequantize_slices`], blocks | pass through |
//! | search | rows are copied part by part for each call |
//! | layers | rows of weights are copied part by part; all activations must fit |
//! | palettes | groups of rows are copied part by part; each group must fit |
//! | k-means | is [`CudaError::OutOfMemory`], because each of its passes would wait for a copy of all points. [`Cudas`] holds more of them |
//! | resident data ([`Cuda::upload`], [`Cuda::layer`], …) | is [`CudaError::OutOfMemory`] |
//!
//! Data that passes through is copied in and out while kernels run. For search, layers and palettes a part is first
//! copied, then processed: the copy takes nearly all of the time.
//!
//! # Tensor cores
//!
//! From compute capability 8.0 on, products of int8 use mma. On 9.0 k-means may use warpgroup products (wgmma): if
//! [`CudaOptions::tensor_cores`] asks for [`TensorCores::Wgmma`], or for the shapes that [`TensorCores::Auto`] chooses
//! them for. Before their first use on a device each process checks them there against mma ([`Wgmma`]).
//!
//! # Threads
//!
//! [`Cuda`], buffers and graphs may be sent to other threads. An engine does one thing at a time (`&mut`); several
//! engines can work at the same time. Dropping is safe from any thread and at any time. [`device_count`],
//! [`device_info`] and [`driver_version`] may be called from any thread.

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
pub(crate) use driver::missing_driver;
pub use driver::{NEEDED, device_count, driver_version};
pub use error::{CudaError, Status, Version};
pub use graph::Graph;
pub use info::{DeviceInfo, device_info};
pub use launch::{Argument, LaunchGrid};
pub use linear::{CudasLayer, DeviceActivations, DeviceLayer};
pub use memory::{DeviceBuffer, MemoryStats};
pub use palette::{CudasPalette, DevicePalette};
pub use quantize::{CudaTensor, CudasTensor, DeviceCodes};
pub use search::{Base, CudasBase, DeviceRows};
pub use watch::Watch;
pub use wgmma::{TensorCores, Wgmma};
