//! What tells a cache how old its values are.

use std::fmt;
use std::time::{Duration, Instant};

/// A clock that never goes back.
pub trait Clock: Send + Sync {
    /// The time since some moment, always the same one.
    fn now(&self) -> Duration;
}

/// The machine's.
#[derive(Clone, Copy)]
pub struct Monotonic(Instant);

impl Default for Monotonic {
    /// Begins now.
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monotonic").field(&self.now()).finish()
    }
}
