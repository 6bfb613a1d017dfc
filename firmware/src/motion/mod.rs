//! An application that learns a wearer's usual motion, flags other motion, and classifies the activity.
//!
//! ```text
//! LSM6DSOX ──I²C──► window of 40 samples ──► 18 features ──► int8 ──┬─► k-means: how far from the usual?  ──► pin, report
//!  (10 Hz)           (pool::Ring, hop 10)     (micromath)           └─► ternary network: which activity?  ──► report
//! ```
//!
//! [`App`] is generic over `embedded-hal` 1.0: give it a bus, a pin and a delay of any board, and call [`App::step`]
//! for ever. It has three phases:
//!
//! 1. [`Phase::Learn`]: online k-means learns from every window ([`Online`](tercet_core::cluster::Online)).
//! 2. [`Phase::Measure`], from [`App::measure`] on: the clusters stay fixed, and the application records the distances
//!    of usual windows that did not form the clusters.
//! 3. [`Phase::Watch`], from [`App::watch`] on: a window is flagged if its distance to every centroid exceeds
//!    [`MARGIN`] times the largest recorded one.
//!
//! [`surprisal`] finds unusual motion in another way: a language model predicts the readings.
//!
//! In every phase a ternary network, read in place from a GGUF file in flash, classifies the activity.
//!
//! # The same bits everywhere
//! Windows are summed in integers. f32 is used for a division, a root (micromath's, a shift and an addition of its
//! bits) and the rounding to int8; each of them is one operation of IEEE 754 or of integers. So codes, distances,
//! flags and logits are equal on every processor, with or without an FPU.
//!
//! # Gravity
//! A sensor at rest reads gravity, which was removed from the recordings that the network was trained on. No feature
//! changes if a constant is added to an axis, so none depends on gravity as long as the sensor keeps its attitude
//! within a window.
//!
//! # Memory
//! All memory is [`Memory`], a `static` of zeros (1440 bytes on a Cortex-M), and the [`App`] itself (under 400 bytes
//! beside the bus, the pin and the delay). There is no heap. Steps take about a kilobyte of stack.
//!
//! # Files
//! `data/README.md` names the sources of the recordings and the network, and `data/motion.py` makes them.

mod adapter;
mod app;
mod detector;
pub mod emulated;
mod error;
mod features;
mod letters;
mod network;
mod recordings;
mod report;
mod scales;
mod sensor;
pub mod surprisal;
#[cfg(test)]
mod tests;
mod trial;

pub use adapter::{Adapter, TENSORS};
pub use app::{App, Memory};
pub use detector::{CLUSTERS, MARGIN, Phase};
pub use error::Error;
pub use features::{Codes, FEATURES, Values, codes, values};
pub use letters::{Change, LETTERS, change, letter};
pub use network::{Activity, CLASSES, sizes};
pub use recordings::{Recording, Recordings};
pub use report::Report;
pub use sensor::{AXES, PERIOD_MS, Sample};
pub use trial::{Counts, DIGEST, Played, Trial};

/// Samples per window: 4 s.
pub const WINDOW: usize = 40;

/// Samples between the starts of two windows: 1 s.
pub const HOP: usize = 10;
