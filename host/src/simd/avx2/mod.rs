//! Kernels for AVX2 and what else x86-64-v3 has.

pub(super) mod blocks;
