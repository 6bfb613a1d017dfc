//! Kernels for AVX2 (with BMI, FMA and the rest of x86-64-v3).

pub(super) mod linear;
