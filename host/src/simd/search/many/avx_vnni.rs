//! Dot products of many int8 queries with a block of rows, 8 rows per vector, with `vpdpbusd`.

use super::cluster::AvxVnni;

crate::simd::search::many::many_kernels!(AvxVnni, 2, "avx2,avxvnni,f16c,fma");
