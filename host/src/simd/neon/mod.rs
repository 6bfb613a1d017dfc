//! Kernels for NEON.

pub(super) mod cluster;
