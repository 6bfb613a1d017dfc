//! Dot products of many int8 queries with a block of rows, 4 rows per vector, with `sdot`.

use super::cluster::DotProd;

crate::simd::search::many::many_kernels!(DotProd, 4, "neon,dotprod");
