//! Kernels for AArch64's NEON.

pub(super) mod peak;
pub(super) mod search;
