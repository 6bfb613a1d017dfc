//! Kernels for AVX-VNNI.

pub(super) mod peak;
