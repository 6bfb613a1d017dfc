//! Keeps tensors on a device, and on the host after the device drops them.
//!
//! Copying weights to a device costs more than using them there. A [`Cache`] keeps values by key on the device. Each
//! tier has a byte budget and drops the least recently used value first: from the device it goes to the host, and from
//! the host it is deleted. A missing value is computed once, however many threads ask for it.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use tercet_gpu::cache::{Cache, CacheOptions, Computed, Tiers};
//!
//! /// A device whose memory is a boxed slice.
//! struct Boxes;
//!
//! impl Tiers for Boxes {
//!     type Device = Box<[i8]>;
//!     type Host = Vec<i8>;
//!     type Error = Infallible;
//!
//!     fn upload(&self, host: &Vec<i8>) -> Result<Box<[i8]>, Infallible> {
//!         Ok(host.as_slice().into())
//!     }
//!     fn download(&self, device: &Box<[i8]>) -> Result<Vec<i8>, Infallible> {
//!         Ok(device.to_vec())
//!     }
//!     fn device_bytes(&self, device: &Box<[i8]>) -> usize {
//!         device.len()
//!     }
//!     fn host_bytes(&self, host: &Vec<i8>) -> usize {
//!         host.len()
//!     }
//!     fn uploaded_bytes(&self, host: &Vec<i8>) -> usize {
//!         host.len()
//!     }
//! }
//!
//! let options = CacheOptions { device_bytes: 200, host_bytes: 400, ..CacheOptions::default() };
//! let cache = Cache::new(options, Boxes);
//! let layer = |number: i8| {
//!     let computed = || Ok::<_, Infallible>(Computed::Host(vec![number; 100]));
//!     cache.get_or_compute(&number, computed).map(|weights| weights[0])
//! };
//! for number in [1, 2, 1, 3] {
//!     assert_eq!(layer(number)?, number);
//! }
//! // Two have room on the device; the second was not used for longest.
//! assert_eq!([1, 2, 3].map(|number| cache.places(&number).0), [true, false, true]);
//! // It comes back from the host.
//! assert_eq!(layer(2)?, 2);
//! let stats = cache.stats();
//! assert_eq!((stats.misses, stats.device_hits, stats.host_hits), (3, 1, 1));
//! # Ok::<(), tercet_gpu::cache::CacheError<Infallible, Infallible>>(())
//! ```
//!
//! # Guarantees
//!
//! - The cache uses at most the budget of each tier, including values that are being uploaded. It makes room before it
//!   uploads a value.
//! - The value of a [`Pinned`] handle is not evicted, and not freed if it is removed or too old. So hold a handle while
//!   the value is used, and not longer.
//! - A value that is larger than the device's budget, or for which handles leave no room, is returned but not kept
//!   there. Only its handle owns it, and it does not count in the budget.
//! - One thread at a time computes the value of a key; threads that ask meanwhile wait and get it. An error or a panic
//!   concerns only the computing thread and is not kept; then one of the others computes.
//! - A value that comes from the host, or was computed there, keeps its copy on the host as long as nothing else needs
//!   that memory: leaving the device then costs nothing. Such copies are dropped first, and never displace values that
//!   are nowhere else.
//! - Values never change. To replace one, call [`Cache::remove`] first.
//!
//! # Why not `tercet_core::pool::Lru`
//!
//! That cache owns its memory, in blocks whose number and size are constants, copies elements into them, and is
//! borrowed as long as one of its values is. Here values are buffers of a device, their sizes and the budgets are known
//! only at run time, and handles outlive the lock. Both use the same terms for their counts
//! ([`tercet_core::pool::Stats`]).
#![forbid(unsafe_code)]

#[expect(
    clippy::module_inception,
    reason = "the module is of the cache and what belongs to it"
)]
mod cache;
mod clock;
#[cfg(feature = "cuda")]
mod cuda;
mod flight;
mod found;
mod lead;
mod meters;
mod options;
mod order;
mod pinned;
mod stats;
mod table;
mod tiers;

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod property;

pub use cache::{Cache, Got};
pub use clock::{Clock, Monotonic};
#[cfg(feature = "cuda")]
pub use cuda::CudaTiers;
pub use options::CacheOptions;
pub use pinned::{CacheError, Pinned};
pub use stats::CacheStats;
pub use tiers::{Computed, Tiers};
