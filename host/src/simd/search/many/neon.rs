//! Dot products of many int8 queries with a block of rows, 4 rows per vector, with `smlal`.

use super::vectors::Neon;

crate::simd::search::many::many_kernels!(Neon, 4, "neon");
