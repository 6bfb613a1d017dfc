//! Tiles of 16-bit activations; all else is AVX2's.

pub(in crate::simd) mod folds;
pub(in crate::simd) mod half_tiles;

use crate::simd::avx2::linear::KERNELS as VECTORS;
use crate::simd::linear::Linear;

/// The kernels of layers.
pub(in crate::simd) const KERNELS: Linear = Linear {
    half_tiles: half_tiles::half_tiles,
    ..VECTORS
};
