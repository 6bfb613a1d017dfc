//! Kernels for AArch64's NEON.

pub(super) mod affine;
pub(super) mod blocks;
pub(super) mod cluster;
pub(super) mod many_search;
pub(super) mod peak;
pub(super) mod search;
pub(super) mod stats;
pub(super) mod ternary;
