//! Kernels for AVX2 (with BMI, F16C, FMA, LZCNT and POPCNT).

pub(super) mod blocks;
pub(super) mod cluster;
pub(super) mod compare;
pub(super) mod float_search;
pub(super) mod linear;
pub(super) mod many_search;
pub(super) mod palette;
pub(super) mod peak;
pub(super) mod quantize;
pub(super) mod search;
pub(super) mod stream;
pub(super) mod ternary_search;
pub(super) mod widen;
