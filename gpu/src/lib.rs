//! Tercet on a GPU: the operations of [`tercet_core`] on NVIDIA's devices, with the same bits.
//!
//! The crate also has the `tercet` command; its README says what that does.
//!
//! | module | is |
//! |---|---|
//! | [`AnyEngine`] | one value for whichever engine does a piece of work |
//! | [`batch`] | small requests of one kind grouped into one launch, for every engine |
//! | [`cache`] | tensors that stay on a device, and on the host when they leave it |
//! | [`dispatch`] | chooses the engine of each call by what it costs here, on the CPU or a device; with or without the feature `cuda` |
//! | `engine` | the engine on CUDA devices, in the feature `cuda`, which is on by default |
//! | [`observe`] | counters, gauges and histograms of all of these, for Prometheus, Grafana or a program's own recorder |
//! | [`trace`] | what ran when, on the processor's threads and on devices, for a viewer |
//!
//! Nothing of CUDA is needed to build, and running needs only the driver, from version 11.8 on. Where there is none the
//! engine says so as an error, in one line, and the CPU's engines have the same results:
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
pub mod cache;
pub mod dispatch;
#[cfg(feature = "cuda")]
pub mod engine;
pub mod observe;
mod sync;
pub mod trace;

pub use any::{AnyBase, AnyClusters, AnyEngine, AnyTensor};
