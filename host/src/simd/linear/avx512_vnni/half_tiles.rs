//! Tiles of 16-bit activations: `vpdpwssd` adds the products of pairs.

use std::arch::x86_64::*;

use crate::simd::avx512::linear::half_tiles::AddPairs;
use crate::simd::avx512_vnni::cluster::Avx512Vnni;
use crate::simd::linear::half_tiles::by_half_tiles;

by_half_tiles!(
    Avx512Vnni,
    32,
    8,
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
);

impl AddPairs for Avx512Vnni {
    #[inline(always)]
    fn add(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_dpwssd_epi32(sum, a, b) }
    }
}
