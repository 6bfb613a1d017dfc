//! Recorded figures of a cache.

use metrics::Counter;

use super::CacheStats;
use crate::observe::{Level, counter, of};

/// A counted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    DeviceHit,
    HostHit,
    Shared,
    Miss,
    Failure,
    Eviction,
    Demotion,
    Dropped,
    Lost,
    Expired,
}

impl Event {
    const ALL: [Self; 10] = [
        Self::DeviceHit,
        Self::HostHit,
        Self::Shared,
        Self::Miss,
        Self::Failure,
        Self::Eviction,
        Self::Demotion,
        Self::Dropped,
        Self::Lost,
        Self::Expired,
    ];

    /// Returns its counter.
    pub(super) const fn of(self, stats: &mut CacheStats) -> &mut u64 {
        match self {
            Self::DeviceHit => &mut stats.device_hits,
            Self::HostHit => &mut stats.host_hits,
            Self::Shared => &mut stats.shared,
            Self::Miss => &mut stats.misses,
            Self::Failure => &mut stats.failures,
            Self::Eviction => &mut stats.evictions,
            Self::Demotion => &mut stats.demotions,
            Self::Dropped => &mut stats.dropped,
            Self::Lost => &mut stats.lost,
            Self::Expired => &mut stats.expired,
        }
    }

    fn counter(self, cache: &str) -> Counter {
        let get = |result| counter(&of::CACHE_GETS, &[cache, result]);
        let family = match self {
            Self::DeviceHit => return get("device_hit"),
            Self::HostHit => return get("host_hit"),
            Self::Shared => return get("shared"),
            Self::Miss => return get("miss"),
            Self::Failure => of::CACHE_FAILURES,
            Self::Eviction => of::CACHE_EVICTIONS,
            Self::Demotion => of::CACHE_DEMOTIONS,
            Self::Dropped => of::CACHE_DROPPED,
            Self::Lost => of::CACHE_LOST,
            Self::Expired => of::CACHE_EXPIRED,
        };
        counter(&family, &[cache])
    }
}

/// Handles to the recorded figures of a cache.
pub(super) struct Meters {
    events: [Counter; Event::ALL.len()],
    device: Level,
    host: Level,
}

impl Meters {
    pub(super) fn new(cache: &str) -> Self {
        let tier = |tier| {
            let gauges = [of::CACHE_BYTES, of::CACHE_HIGH_WATER, of::CACHE_CAPACITY];
            Level::of(gauges, of::CACHE_UNKEPT, &[cache, tier])
        };
        Self {
            events: Event::ALL.map(|event| event.counter(cache)),
            device: tier("device"),
            host: tier("host"),
        }
    }

    pub(super) fn count(&self, event: Event, times: u64) {
        self.events[event as usize].increment(times);
    }

    /// Records how full the tiers are.
    pub(super) fn show(&self, stats: &CacheStats) {
        self.device.show(&stats.device);
        self.host.show(&stats.host);
    }
}
