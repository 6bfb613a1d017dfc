//! GGUF block formats.

mod dot;
mod sum;

use crate::simd::avx512;
use crate::simd::blocks::{Blocks, by_loops};

/// The kernels of blocks.
pub(in crate::simd) const KERNELS: Blocks = Blocks {
    dot: dot::of,
    ..avx512::blocks::KERNELS
};

by_loops!(crate::simd::avx512_vnni::cluster::Avx512Vnni, "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,f16c": dot, vector);
