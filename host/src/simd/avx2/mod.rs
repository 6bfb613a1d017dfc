//! Kernels for AVX2.

pub(super) mod cluster;
