//! What the application says of a window.

use super::{Activity, CLASSES, Codes, Phase};

/// What was found of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Windows before this one.
    pub number: u32,
    /// What was done with it.
    pub phase: Phase,
    /// Its features.
    pub codes: Codes,
    /// The nearest cluster; the one that took it up while learning.
    pub cluster: u32,
    /// The squared distance to that cluster's centroid, as it was before.
    pub distance: u32,
    /// The largest squared distance that is not flagged; 0 until something was measured.
    pub limit: u32,
    /// Whether it is unlike everything learned; never before watching.
    pub flagged: bool,
    /// What the network takes it for.
    pub activity: Activity,
    /// The network's exact sums, an activity each.
    pub logits: [i64; CLASSES],
}

/// One line: `window 12: Walking, cluster 3 at 841, limit 5206, flagged`.
#[cfg(feature = "defmt")]
impl defmt::Format for Report {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(
            f,
            "window {=u32}: {}, cluster {=u32} at {=u32}",
            self.number,
            self.activity,
            self.cluster,
            self.distance
        );
        match self.phase {
            Phase::Learn => defmt::write!(f, ", learned"),
            Phase::Measure => defmt::write!(f, ", measured"),
            Phase::Watch if self.flagged => {
                defmt::write!(f, ", limit {=u32}: flagged", self.limit);
            }
            Phase::Watch => defmt::write!(f, ", limit {=u32}", self.limit),
        }
    }
}
