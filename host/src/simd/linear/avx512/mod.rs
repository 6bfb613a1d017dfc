//! Rows of weights times 16-bit activations, 64 bytes at a time; all else is AVX2's.

pub(in crate::simd) mod folds;
pub(in crate::simd) mod halves;

use crate::simd::avx2::linear::KERNELS as VECTORS;
use crate::simd::linear::Linear;

/// The kernels of layers.
pub(in crate::simd) const KERNELS: Linear = Linear {
    halves: halves::halves,
    half_tiles: halves::half_tiles,
    ..VECTORS
};
