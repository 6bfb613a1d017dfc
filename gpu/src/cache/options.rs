//! Options of a cache.

use std::time::Duration;

/// Options of a cache: how much it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Maximum bytes on the device. 0: nothing stays there.
    pub device_bytes: usize,
    /// Maximum bytes on the host. 0: values that leave the device are dropped.
    pub host_bytes: usize,
    /// How long a value is valid after it was computed; `None` is forever.
    pub time_to_live: Option<Duration>,
    /// Name of the cache in recorded figures ([`crate::observe`]). Figures of caches with the same name are added up,
    /// except for bytes, where the last change counts.
    pub name: &'static str,
}

impl Default for CacheOptions {
    /// Budgets of 0, no age limit; the name is "cache".
    fn default() -> Self {
        Self {
            device_bytes: 0,
            host_bytes: 0,
            time_to_live: None,
            name: "cache",
        }
    }
}
