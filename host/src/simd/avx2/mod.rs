//! Kernels for AVX2 and what comes with it (x86-64-v3).

pub(super) mod float_search;
pub(super) mod search;
pub(super) mod ternary_search;
