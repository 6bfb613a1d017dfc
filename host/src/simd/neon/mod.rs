//! Kernels for AArch64 with NEON.

pub(super) mod affine;
pub(super) mod stats;
pub(super) mod ternary;
