//! Kernels for SSE4.1.

pub(in crate::simd) mod cluster;
pub(in crate::simd) mod many_search;
pub(in crate::simd) mod peak;
pub(in crate::simd) mod search;
