//! Records figures of a device.

use metrics::Counter;

use super::timeline::{Kind, Queued};
use crate::observe::{Level, counter, of};

/// Handles to the figures of a stream's device; streams of one device share them.
pub(super) struct Meters {
    queued: [Counter; Kind::ALL.len()],
    moved: [Counter; Kind::ALL.len()],
}

impl Meters {
    pub(super) fn new(device: usize) -> Self {
        let device = device.to_string();
        let all = |family| Kind::ALL.map(|kind| counter(&family, &[&device, kind.name()]));
        Self {
            queued: all(of::DEVICE_QUEUED),
            moved: all(of::DEVICE_MOVED),
        }
    }

    pub(super) fn count(&self, queued: Queued) {
        let (kind, bytes) = queued.kind();
        self.queued[kind as usize].increment(1);
        self.moved[kind as usize].increment(bytes as u64);
    }
}

/// Returns the meter of a device's memory, as its engine uses it.
pub(super) fn memory(device: usize) -> Level {
    let gauges = [of::DEVICE_BYTES, of::DEVICE_HIGH_WATER, of::DEVICE_CAPACITY];
    Level::of(gauges, of::DEVICE_REFUSED, &[&device.to_string()])
}
