//! Kernels for AArch64's DotProd.

pub(super) mod cluster;
pub(super) mod linear;
pub(super) mod many_search;
pub(super) mod peak;
pub(super) mod search;
