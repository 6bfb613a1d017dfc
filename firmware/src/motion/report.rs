//! The application's results for a window.

use super::{Activity, CLASSES, Codes, Phase};

/// The results for one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of windows before this one.
    pub number: u32,
    /// The phase in which it was processed.
    pub phase: Phase,
    /// Its features.
    pub codes: Codes,
    /// The nearest cluster; in the learning phase, the cluster that it was added to.
    pub cluster: u32,
    /// The squared distance to the centroid of that cluster before the window was added.
    pub distance: u32,
    /// The largest squared distance that is not flagged; 0 until something was measured.
    pub limit: u32,
    /// True if the window is unlike all learned ones; never true before the watch phase.
    pub flagged: bool,
    /// The activity according to the network.
    pub activity: Activity,
    /// The network's exact sums, one per activity.
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
