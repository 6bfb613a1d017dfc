//! Kernels for AVX2 and what [`super::Isa::Avx2`] asks for beside it.

pub(super) mod peak;
pub(super) mod stream;
