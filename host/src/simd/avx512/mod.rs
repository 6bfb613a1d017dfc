//! Kernels for AVX-512 (F, BW, CD, DQ, VL).

pub(super) mod affine;
pub(super) mod blocks;
pub(super) mod cluster;
pub(super) mod float_search;
pub(super) mod magnitudes;
pub(super) mod many_search;
pub(super) mod peak;
pub(super) mod search;
pub(super) mod stats;
pub(super) mod stream;
pub(super) mod ternary;
pub(super) mod widen;
