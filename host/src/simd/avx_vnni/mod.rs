//! Kernels for AVX-VNNI.

pub(super) mod cluster;
pub(super) mod many_search;
pub(super) mod peak;
pub(super) mod search;
