//! Tercet on a GPU: the operations of [`tercet_core`] on NVIDIA devices, with the same bits.
//!
//! The crate also contains the `tercet` command; the README describes it.
//!
//! | module | contents |
//! |---|---|
//! | [`AnyEngine`] | one type for any of the engines |
//! | [`batch`] | groups small requests of one kind into one launch, for every engine |
//! | [`dispatch`] | chooses the engine of each call, CPU or device, by its cost on this machine; with or without the feature `cuda` |
//! | `engine` | the engine on CUDA devices; needs the feature `cuda`, which is on by default |
//! | [`observe`] | counters, gauges and histograms of all of these, for Prometheus and Grafana, by any recorder of the crate `metrics` |
//! | [`trace`] | records which work ran when, on CPU threads and devices, for a trace viewer |
//!
//! Building needs no part of CUDA. Running needs only the driver, version 11.8 or later. Without a driver the engine
//! returns an error of one line, and the CPU engines give the same results:
//!
//! ```
//! # #[cfg(feature = "cuda")] {
//! use tercet_gpu::engine::Cuda;
//!
//! match Cuda::first() {
//!     Ok(cuda) => println!("{}", cuda.device_info().unwrap()),
//!     Err(error) => println!("no GPU: {error}"),
//! }
//! # }
//! ```

mod any;
pub mod batch;
pub mod dispatch;
#[cfg(feature = "cuda")]
pub mod engine;
pub mod observe;
mod sync;
pub mod trace;

pub use any::{AnyBase, AnyClusters, AnyEngine, AnyTensor};

/// The examples of the dispatcher's page, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../DISPATCHER.md")]
struct DispatcherPage;
