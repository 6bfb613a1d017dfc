//! Dot products of many int8 queries with a block of rows, 4 rows per vector, with `pmaddwd` on widened pairs.

use super::vectors::Sse41;

crate::simd::search::many::many_kernels!(Sse41, 2, "sse4.1");
