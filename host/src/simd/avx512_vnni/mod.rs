//! Kernels for AVX-512 with VNNI, VBMI, VBMI2, BITALG and VPOPCNTDQ.

pub(super) mod blocks;
pub(super) mod cluster;
pub(super) mod linear;
pub(super) mod many_search;
pub(super) mod palette;
pub(super) mod peak;
pub(super) mod search;
pub(super) mod ternary_search;
