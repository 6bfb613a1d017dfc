//! Dot products of many int8 queries with a block of rows, 16 rows per vector, with `vpmaddwd` on widened pairs.

use super::vectors::Avx512;

crate::simd::search::many::many_kernels!(Avx512, 4, "avx512f,avx512bw,avx512dq,avx512vl");
