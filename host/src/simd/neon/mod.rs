//! Kernels for AArch64's NEON.

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
