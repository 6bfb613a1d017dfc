//! What one step of a feature's code stands for. Written by `firmware/data/motion.py`.

use super::FEATURES;

/// 1/254 of the largest value in any window of the training recordings.
pub(super) const SCALES: [f32; FEATURES] = [
    0.30765018, 0.30736798, 0.26659343, 0.3052572, 0.2844406, 0.3051845, 0.25397643, 0.26001602,
    0.21785171, 0.25769657, 0.22619814, 0.25501984, 0.5294814, 0.55450296, 0.5362943, 0.8044184,
    0.6092981, 0.6650775,
];
