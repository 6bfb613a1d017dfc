//! GGUF block formats.

mod dot;
mod sum;

use crate::simd::avx512;
use crate::simd::blocks::Blocks;

/// The kernels of blocks.
pub(in crate::simd) const KERNELS: Blocks = Blocks {
    dot: dot::of,
    ..avx512::blocks::KERNELS
};
