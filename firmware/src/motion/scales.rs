//! What one step of a feature's code stands for. Written by `firmware/data/motion.py`.

use super::FEATURES;

/// 1/254 of the largest value in any window of the training recordings.
pub(super) const SCALES: [f32; FEATURES] = [1.0; FEATURES];
