//! What every pool counts.

use core::fmt;

/// How full a pool is, was at most, and how often it had no room.
///
/// The unit is the pool's own: blocks, slots or buffers where it hands out those, bytes where it hands out bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stats {
    /// The most that can be in use at once.
    pub capacity: usize,
    /// In use now.
    pub in_use: usize,
    /// The most that was in use at once since the pool was made: what a smaller pool would have had to hold.
    pub high_water: usize,
    /// Requests refused for want of room; stays at `u32::MAX` once there.
    pub failures: u32,
}

impl Stats {
    /// What is not in use.
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

/// The pool has no room for what was asked; its [`Stats::failures`] counts this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the pool has no room for this")
    }
}

impl core::error::Error for Full {}
