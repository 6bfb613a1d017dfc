//! Kernels for AVX-512 (F, BW, CD, DQ, VL).

pub(super) mod affine;
pub(super) mod peak;
pub(super) mod stream;
