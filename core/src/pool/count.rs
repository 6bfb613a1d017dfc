//! The figures of pools.

use core::fmt;

use super::Stats;

/// The counters of a pool. They are zeros at first, so that a `static` pool is in `.bss`.
///
/// Opaque: [`Scope::over`](super::Scope::over) stores its figures in the caller's value of this type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    high_water: usize,
    failures: u32,
}

impl Counts {
    /// Creates counters of 0.
    pub const fn new() -> Self {
        Self {
            high_water: 0,
            failures: 0,
        }
    }

    /// Records the amount in use now.
    #[inline]
    pub(super) fn reach(&mut self, in_use: usize) {
        self.high_water = self.high_water.max(in_use);
    }

    /// Counts a refused request.
    #[inline]
    pub(super) fn refuse(&mut self) {
        add(&mut self.failures);
    }

    pub(super) const fn stats(&self, capacity: usize, in_use: usize) -> Stats {
        Stats {
            capacity,
            in_use,
            high_water: self.high_water,
            failures: self.failures,
        }
    }
}

/// Adds one; the counter saturates.
#[inline]
pub(super) fn add(count: &mut u32) {
    *count = count.saturating_add(1);
}

/// The counters of a pool with a cache. They saturate at `u32::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CacheStats {
    /// The pool's memory, in bytes.
    pub bytes: Stats,
    /// Requests that found a cached value or buffer.
    pub hits: u32,
    /// Requests that did not.
    pub misses: u32,
    /// Cached values or buffers dropped to make space.
    pub evictions: u32,
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} hits, {} misses, {} evictions; bytes: {}",
            self.hits, self.misses, self.evictions, self.bytes
        )
    }
}
