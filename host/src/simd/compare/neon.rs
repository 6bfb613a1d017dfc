//! Comparisons of tensors in lanes of 128 bits.

use super::vectors::Neon;

crate::simd::compare::compare_kernel!(Neon, "neon");
