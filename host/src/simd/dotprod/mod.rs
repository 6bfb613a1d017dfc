//! Kernels for NEON with DotProd.

pub(super) mod cluster;
