//! Comparisons of tensors in lanes of 256 bits.

use super::vectors::Avx2;

crate::simd::compare::compare_kernel!(Avx2, "avx2,f16c,fma");
