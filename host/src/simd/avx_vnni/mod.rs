//! Kernels for AVX-VNNI.

pub(super) mod cluster;
