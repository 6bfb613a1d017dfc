//! Statistics of a cache.

use tercet_core::pool::Stats;

/// Statistics of a cache since it was made.
///
/// Every call of [`super::Cache::get`] and [`super::Cache::get_or_compute`] that ends counts as one of `device_hits`,
/// `host_hits`, `shared` and `misses`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Bytes of values on the device, including those that are being uploaded. A failure is a value that was returned
    /// uncached.
    pub device: Stats,
    /// Bytes of values on the host, including copies of those on the device. A failure is a value that was not kept.
    pub host: Stats,
    /// Values on the device.
    pub on_device: usize,
    /// Values on the host.
    pub on_host: usize,
    /// Calls that found their value on the device.
    pub device_hits: u64,
    /// Calls that found their value on the host and uploaded it.
    pub host_hits: u64,
    /// Calls that waited for another's upload or computation, and got its value.
    pub shared: u64,
    /// Calls that found nothing.
    pub misses: u64,
    /// Failed computations and uploads, and all panics.
    pub failures: u64,
    /// Values that left the device for lack of room.
    pub evictions: u64,
    /// Evicted values that were downloaded, because the host had no copy.
    pub demotions: u64,
    /// Values that left the host, and so the cache, for lack of room. Copies of values on the device do not count.
    pub dropped: u64,
    /// Values that could not be downloaded.
    pub lost: u64,
    /// Values that were too old.
    pub expired: u64,
}
