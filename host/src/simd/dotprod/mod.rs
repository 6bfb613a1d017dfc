//! Kernels for AArch64's DotProd.

pub(super) mod peak;
