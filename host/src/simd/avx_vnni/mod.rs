//! Kernels for AVX-VNNI.

pub(super) mod cluster;
pub(super) mod search;
