//! Kernels for AVX-512 (F, BW, CD, DQ, VL).

pub(super) mod affine;
pub(super) mod float_search;
pub(super) mod search;
