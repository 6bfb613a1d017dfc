//! What is usual, and how far from it a window lies.

use tercet_core::cluster::Online;

use super::{Codes, Error, FEATURES};

/// Clusters of the usual.
pub const CLUSTERS: usize = 8;

/// A window is flagged whose squared distance is more than this many times the largest that was measured.
pub const MARGIN: u32 = 4;

/// What the application does with a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Clusters take it up.
    #[default]
    Learn,
    /// Its distance shows how far the usual goes.
    Measure,
    /// It is flagged if it is farther.
    Watch,
}

/// Clusters and the distance that the usual stays within.
#[derive(Debug)]
pub(super) struct Detector {
    clusters: Online<CLUSTERS, FEATURES>,
    phase: Phase,
    /// How many windows were measured.
    measured: u32,
    /// The largest squared distance of those.
    farthest: u32,
}

/// What the detector says of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) cluster: u32,
    pub(super) distance: u32,
    pub(super) flagged: bool,
}

impl Detector {
    /// Nothing learned; all zeros.
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

    /// The clusters stand still from here on; nothing is measured yet.
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

    /// The largest squared distance that is not flagged.
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
        // Before anything was learned, everything is as far as can be.
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
