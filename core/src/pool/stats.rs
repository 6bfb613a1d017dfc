//! The figures of every pool.

use core::fmt;

/// Current use, largest use and number of failures of a pool.
///
/// The unit depends on the pool: blocks, slots or buffers for pools of these, bytes for pools of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stats {
    /// Largest amount that can be in use at once.
    pub capacity: usize,
    /// Amount in use now.
    pub in_use: usize,
    /// Largest amount in use at once since the pool was created: a smaller pool would have needed this capacity.
    pub high_water: usize,
    /// Requests that failed for lack of space; saturates at `u32::MAX`.
    pub failures: u32,
}

impl Stats {
    /// Returns the amount that is not in use.
    pub const fn free(&self) -> usize {
        self.capacity.saturating_sub(self.in_use)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} in use, at most {}, {} refused",
            self.in_use, self.capacity, self.high_water, self.failures
        )
    }
}

/// The pool has no space for the request; its [`Stats::failures`] counts this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pool has no room for this")
    }
}

impl core::error::Error for Full {}
