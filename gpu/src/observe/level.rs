//! Gauges of how full something is.

use metrics::{Counter, Gauge};
use tercet_core::pool::Stats;

use super::family::{Family, counter, gauge};

/// Gauges of current use, highest use and capacity, and a counter of how often there was no room.
#[derive(Debug)]
pub(crate) struct Level {
    in_use: Gauge,
    high_water: Gauge,
    capacity: Gauge,
    refused: Counter,
}

impl Level {
    /// Returns the gauges of these families: in use, high water, capacity; refused.
    pub(crate) fn of(gauges: [Family; 3], refused: Family, labels: &[&str]) -> Self {
        let [in_use, high_water, capacity] = gauges.map(|family| gauge(&family, labels));
        Self {
            in_use,
            high_water,
            capacity,
            refused: counter(&refused, labels),
        }
    }

    /// Records how full it is now.
    #[inline]
    pub(crate) fn show(&self, stats: &Stats) {
        self.in_use.set(stats.in_use as f64);
        self.high_water.set(stats.high_water as f64);
        self.capacity.set(stats.capacity as f64);
        self.refused.absolute(u64::from(stats.failures));
    }
}
