//! Gauges of how full a pool is.

use metrics::{Counter, Gauge};
use tercet_core::pool::Stats;

use super::family::{Family, counter, gauge, of};

/// Gauges of a pool: current use, highest use, and capacity; and a counter of how often there was no room.
///
/// Pools of `tercet_core` have their own counts and know no recorder: call [`Level::show`] with their [`Stats`] at any
/// time.
///
/// ```
/// use tercet_core::pool::Stats;
/// use tercet_gpu::observe::{Level, Registry};
///
/// let registry = Registry::new();
/// let level = metrics::with_local_recorder(&registry, || Level::pool("frames"));
/// level.show(&Stats { capacity: 8, in_use: 3, high_water: 5, failures: 1 });
/// assert!(registry.to_prometheus().contains("tercet_pool_high_water{pool=\"frames\"} 5"));
/// ```
#[derive(Debug)]
pub struct Level {
    in_use: Gauge,
    high_water: Gauge,
    capacity: Gauge,
    refused: Counter,
}

impl Level {
    /// Returns the gauges of a pool with this name: `tercet_pool_…`.
    pub fn pool(name: &str) -> Self {
        let families = [of::POOL_IN_USE, of::POOL_HIGH_WATER, of::POOL_CAPACITY];
        Self::of(families, of::POOL_REFUSED, &[name])
    }

    /// Returns gauges of other families: in use, high water, capacity; refused.
    pub(crate) fn of(gauges: [Family; 3], refused: Family, labels: &[&str]) -> Self {
        let [in_use, high_water, capacity] = gauges.map(|family| gauge(&family, labels));
        Self {
            in_use,
            high_water,
            capacity,
            refused: counter(&refused, labels),
        }
    }

    /// Records how full the pool is now.
    #[inline]
    pub fn show(&self, stats: &Stats) {
        self.in_use.set(stats.in_use as f64);
        self.high_water.set(stats.high_water as f64);
        self.capacity.set(stats.capacity as f64);
        self.refused.absolute(u64::from(stats.failures));
    }
}
