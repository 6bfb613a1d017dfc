//! Memory in fixed pools, for programs without a heap.
#![allow(
    unsafe_code,
    reason = "a pool hands out parts of its memory, one owner each; every block argues why"
)]

mod arena;
mod count;
mod lock;
mod lru;
mod ring;
mod shape;
mod stats;

#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub use arena::SharedArena;
pub use arena::{Arena, ArenaError, Scope};
pub use count::CacheStats;
#[cfg(feature = "critical-section")]
pub use lock::Critical;
pub use lock::{Local, Lock};
pub use lru::{Elements, Lru, Parts, Value};
pub use ring::{Ring, RingIter};
#[cfg(feature = "critical-section")]
pub use shape::CriticalShapePool;
pub use shape::{Buffer, Kind, Plain, Shape, ShapeError, ShapePool, Shapes};
pub use stats::{Full, Stats};

/// Keeps traits that say what a pool's parts are from being implemented elsewhere.
mod sealed {
    pub trait Sealed {}
}
