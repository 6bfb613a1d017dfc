//! An application that knows a wearer's motion: it learns what is usual, flags what is not, and names the activity.
//!
//! ```text
//! LSM6DSOX ──I²C──► window of 40 samples ──► 18 features ──► int8 ──┬─► k-means: how far from the usual?  ──► pin, report
//!  (10 Hz)           (pool::Ring, hop 10)     (micromath)           └─► ternary network: which activity?  ──► report
//! ```
//!
//! [`App`] is generic over `embedded-hal` 1.0: give it a bus, a pin and a delay of any board, and call [`App::step`] for
//! ever. It lives through three phases:
//!
//! 1. [`Phase::Learn`]: online k-means takes up every window ([`Online`](tercet_core::cluster::Online)).
//! 2. [`Phase::Measure`], from [`App::measure`] on: the clusters stand still; how far windows of the usual that they were not
//!    made from lie is recorded.
//! 3. [`Phase::Watch`], from [`App::watch`] on: a window farther from every centroid than [`MARGIN`] times that is flagged.
//!
//! In every phase a ternary network, read in place from a GGUF file in flash, names the activity.
//!
//! # The same bits everywhere
//! Windows are summed in integers; f32 is used for a division, a root (micromath's, a shift and an addition of its bits)
//! and the rounding to int8, each of them one operation of IEEE 754 or of integers. So codes, distances, flags and logits
//! are equal on every processor, with an FPU or without.
//!
//! # Gravity
//! A sensor at rest reads gravity; the recordings that the network was trained on have it taken out. No feature changes
//! where a constant is added to an axis, so none sees gravity as long as the sensor keeps its attitude within a window.
//!
//! # Memory
//! All of it is [`Memory`], a `static` of zeros (1440 bytes on a Cortex-M), and the [`App`] itself (under 400 beside the bus, the pin and the
//! delay); there is no heap. Steps take about a kilobyte of stack.
//!
//! # Files
//! `data/README.md` says where the recordings and the network come from, `data/motion.py` makes them.

mod app;
mod detector;
pub mod emulated;
mod error;
mod features;
mod network;
mod recordings;
mod report;
mod scales;
mod sensor;
#[cfg(test)]
mod tests;
mod trial;

pub use app::{App, Memory};
pub use detector::{CLUSTERS, MARGIN, Phase};
pub use error::Error;
pub use features::{Codes, FEATURES, Values, codes, values};
pub use network::{Activity, CLASSES, sizes};
pub use recordings::{Recording, Recordings};
pub use report::Report;
pub use sensor::{AXES, PERIOD_MS, Sample};
pub use trial::{Counts, DIGEST, Played, Trial};

/// Samples in a window: 4 s.
pub const WINDOW: usize = 40;

/// Samples between the starts of two windows: 1 s.
pub const HOP: usize = 10;
