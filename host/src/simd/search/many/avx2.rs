//! Dot products of many int8 queries with a block of rows, 8 rows per vector, with `vpmaddwd` on widened pairs.

use super::vectors::Avx2;

crate::simd::search::many::many_kernels!(Avx2, 2, "avx2,f16c,fma");
