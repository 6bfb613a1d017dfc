//! Kernels for AVX-512 (F, BW, CD, DQ, VL).

pub(super) mod blocks;
pub(super) mod cluster;
pub(super) mod compare;
pub(super) mod float_search;
pub(super) mod many_search;
pub(super) mod peak;
pub(super) mod quantize;
pub(super) mod search;
pub(super) mod stream;
pub(super) mod widen;
