//! The usual motion, and the distance of a window from it.

use tercet_core::cluster::Online;

use super::{Codes, Error, FEATURES};

/// Number of clusters of usual windows.
pub const CLUSTERS: usize = 8;

/// A window is flagged if its squared distance is more than this many times the largest measured one.
pub const MARGIN: u32 = 4;

/// The application's use of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// The clusters learn from it.
    #[default]
    Learn,
    /// Its distance is measured, for the limit of the usual.
    Measure,
    /// It is flagged if its distance exceeds the limit.
    Watch,
}

/// Clusters, and the distance within which usual windows lie.
#[derive(Debug)]
pub(super) struct Detector {
    clusters: Online<CLUSTERS, FEATURES>,
    phase: Phase,
    /// Number of measured windows.
    measured: u32,
    /// The largest squared distance of the measured windows.
    farthest: u32,
}

/// The detector's result for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) cluster: u32,
    pub(super) distance: u32,
    pub(super) flagged: bool,
}

impl Detector {
    /// Makes a detector that has learned nothing; all zeros.
    pub(super) const fn new() -> Self {
        Self {
            clusters: Online::new(),
            phase: Phase::Learn,
            measured: 0,
            farthest: 0,
        }
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Fixes the clusters from here on, and starts to measure.
    pub(super) fn measure(&mut self) {
        self.phase = Phase::Measure;
        (self.measured, self.farthest) = (0, 0);
    }

    /// Ends measuring.
    pub(super) fn watch(&mut self) -> Result<(), Error> {
        if self.measured == 0 {
            return Err(Error::Unmeasured);
        }
        self.phase = Phase::Watch;
        Ok(())
    }

    /// Returns the largest squared distance that is not flagged.
    pub(super) const fn limit(&self) -> u32 {
        self.farthest.saturating_mul(MARGIN)
    }

    pub(super) fn take(&mut self, codes: &Codes) -> Verdict {
        if self.phase == Phase::Learn {
            let seen = self.clusters.observe(codes);
            return Verdict {
                cluster: seen.label,
                distance: seen.distance,
                flagged: false,
            };
        }
        // Before anything was learned, every window has the largest distance.
        let (cluster, distance) = match self.clusters.predict(codes) {
            Some(near) => (near.label, near.distance),
            None => (0, u32::MAX),
        };
        if self.phase == Phase::Measure {
            self.measured = self.measured.saturating_add(1);
            self.farthest = self.farthest.max(distance);
        }
        Verdict {
            cluster,
            distance,
            flagged: self.phase == Phase::Watch && distance > self.limit(),
        }
    }
}
