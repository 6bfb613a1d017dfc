//! How much a cache may hold.

use std::time::Duration;

/// How much a cache may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Bytes on the device. 0: nothing stays there.
    pub device_bytes: usize,
    /// Bytes on the host. 0: what leaves the device is dropped.
    pub host_bytes: usize,
    /// How long a value is good for after it was computed; `None` is for ever.
    pub time_to_live: Option<Duration>,
    /// What the cache is called where it is recorded ([`crate::observe`]). Figures of caches of one name are added up, but for bytes, where
    /// the last to change counts.
    pub name: &'static str,
}

impl Default for CacheOptions {
    /// Of nothing, and for ever; the name is "cache".
    fn default() -> Self {
        Self {
            device_bytes: 0,
            host_bytes: 0,
            time_to_live: None,
            name: "cache",
        }
    }
}
