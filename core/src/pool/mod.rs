//! Memory in fixed pools, for programs without a heap.
//!
//! A pool is a value of fixed size, created by a `const fn`, so it may be a `static`, a field or a local variable.
//! The memory that it returns is freed when dropped and cannot outlive the pool. If there is no space, a request
//! returns an error and does not panic. Every pool reports its current and its largest use ([`Stats`]), so that a
//! program finds its sizes by running.
//!
//! | pool | returns | may be used by |
//! |---|---|---|
//! | [`BlockPool`] | values in blocks of one size | one owner |
//! | [`SharedBlockPool`] | the same | threads and interrupts, without a lock |
//! | `CriticalBlockPool` | the same | threads and interrupts, in critical sections (feature `critical-section`) |
//! | [`Arena`] | memory of any size and alignment, until a mark or the batch ends | one owner |
//! | [`SharedArena`] | the same, without marks | threads and interrupts, without a lock |
//! | [`ShapePool`] | buffers, reused by shape and element type | one owner |
//! | `CriticalShapePool` | the same | threads and interrupts, in critical sections |
//! | [`Ring`] | the newest slots of a stream | one owner |
//! | [`Lru`] | the most recently used values, by key | one owner |
//! | `Guarded` | the use of any of these | threads and interrupts, in critical sections |
//!
//! ```
//! use tercet_core::pool::{Block, BlockPool};
//!
//! struct Window {
//!     samples: [i8; 48],
//!     label: u8,
//! }
//! type Windows = BlockPool<64, 2>;
//!
//! let pool = Windows::new();
//! let window = Window { samples: [0; 48], label: 1 };
//! let mut first: Block<'_, Window, Windows> = pool.alloc(window).ok().unwrap();
//! first.samples[0] = 5;
//!
//! // Any type that fits takes a block. When none is free the value comes back.
//! let second = pool.alloc(2.5_f64).unwrap();
//! assert_eq!(pool.alloc(3_u8), Err(3));
//!
//! drop(second);
//! assert_eq!(Block::into_inner(first).label, 1);
//! let stats = pool.stats();
//! assert_eq!((stats.in_use, stats.high_water, stats.failures), (0, 2, 1));
//! ```
#![allow(
    unsafe_code,
    reason = "a pool hands out parts of its memory, one owner each; every block argues why"
)]

mod arena;
mod block;
mod blocks;
mod count;
#[cfg(feature = "critical-section")]
mod guarded;
mod list;
mod lock;
mod lru;
mod ring;
mod shape;
mod stats;

#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub use arena::SharedArena;
pub use arena::{Arena, ArenaError, Scope};

pub use block::{Block, Release};
#[cfg(feature = "critical-section")]
pub use blocks::CriticalBlockPool;
#[cfg(any(target_has_atomic = "32", feature = "portable-atomic"))]
pub use blocks::SharedBlockPool;
pub use blocks::{BLOCK_ALIGN, BlockPool, Blocks};
pub use count::{CacheStats, Counts};
#[cfg(feature = "critical-section")]
pub use guarded::Guarded;
#[cfg(any(target_has_atomic = "32", feature = "portable-atomic"))]
pub use list::AtomicList;
#[cfg(feature = "critical-section")]
pub use list::CriticalList;
pub use list::{FreeList, LocalList, MAX_BLOCKS};
#[cfg(feature = "critical-section")]
pub use lock::Critical;
pub use lock::{Local, Lock};
pub use lru::{Elements, Lru, Parts, Value};
pub use ring::{Ring, RingIter};
#[cfg(feature = "critical-section")]
pub use shape::CriticalShapePool;
pub use shape::{Buffer, Shape, ShapeError, ShapePool, Shapes};
pub use stats::{Full, Stats};

/// Prevents implementations of the traits of a pool's parts in other crates.
mod sealed {
    pub trait Sealed {}
}
