//! Comparisons of tensors in lanes of 512 bits.

use super::vectors::Avx512;

crate::simd::compare::compare_kernel!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl");
