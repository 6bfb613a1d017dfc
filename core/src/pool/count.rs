//! How pools keep their figures.

use core::fmt;

use super::Stats;

/// What a pool counts itself; zeros when it is made, so that a `static` pool lies in `.bss`.
///
/// Opaque: [`Scope::over`](super::Scope::over) keeps its figures in one of the caller's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    high_water: usize,
    failures: u32,
}

impl Counts {
    /// Nothing counted.
    pub const fn new() -> Self {
        Self {
            high_water: 0,
            failures: 0,
        }
    }

    /// Notes how much is in use now.
    #[inline]
    pub(super) fn reach(&mut self, in_use: usize) {
        self.high_water = self.high_water.max(in_use);
    }

    /// Counts a request that was refused.
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

/// Adds one, up to the last number there is.
#[inline]
pub(super) fn add(count: &mut u32) {
    *count = count.saturating_add(1);
}

/// What a pool that remembers counts. Counters stay at `u32::MAX` once there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CacheStats {
    /// Its memory, in bytes.
    pub bytes: Stats,
    /// Requests that found what they asked for.
    pub hits: u32,
    /// Requests that did not.
    pub misses: u32,
    /// Remembered things given up to make room.
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
