//! What a cache counts.

use tercet_core::pool::Stats;

/// What a cache has counted since it was made.
///
/// Every call of [`super::Cache::get`] and [`super::Cache::get_or_compute`] that ends is one of `device_hits`, `host_hits`, `shared` and
/// `misses`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Bytes of values on the device, those on their way there included. A failure is a value that was given out uncached.
    pub device: Stats,
    /// Bytes of values on the host, copies of those on the device included. A failure is one that was not kept.
    pub host: Stats,
    /// Values on the device.
    pub on_device: usize,
    /// Values on the host.
    pub on_host: usize,
    /// Calls that found their value on the device.
    pub device_hits: u64,
    /// Calls that found their value on the host and uploaded it.
    pub host_hits: u64,
    /// Calls that waited for another's upload or computing, and got its value.
    pub shared: u64,
    /// Calls that found nothing.
    pub misses: u64,
    /// Computings and uploads that failed, and whatever panicked.
    pub failures: u64,
    /// Values that left the device for want of room.
    pub evictions: u64,
    /// Those of them that were downloaded, since the host had no copy.
    pub demotions: u64,
    /// Values that left the host, and so the cache, for want of room. Copies of what is on the device do not count.
    pub dropped: u64,
    /// Values that could not be downloaded.
    pub lost: u64,
    /// Values that were too old.
    pub expired: u64,
}
