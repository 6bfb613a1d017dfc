//! Kernels for AVX-VNNI.

pub(super) mod cluster;
pub(super) mod peak;
pub(super) mod search;
