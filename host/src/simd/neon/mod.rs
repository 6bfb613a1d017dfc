//! Kernels for NEON.

pub(super) mod blocks;
