//! How much a cache may hold.

use std::time::Duration;

/// How much a cache may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheOptions {
    /// Bytes on the device. 0: nothing stays there.
    pub device_bytes: usize,
    /// Bytes on the host. 0: what leaves the device is dropped.
    pub host_bytes: usize,
    /// How long a value is good for after it was computed; `None` is for ever.
    pub time_to_live: Option<Duration>,
}
