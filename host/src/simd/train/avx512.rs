//! Products of pairs with AVX-512.

use std::arch::x86_64::*;

use super::weights::PairProducts;

/// AVX-512, which this machine supports.
#[derive(Clone, Copy)]
pub(super) struct Pairs(());

impl Pairs {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn here() -> Self {
        Self(())
    }
}

impl PairProducts for Pairs {
    const COLUMNS: usize = 16;
    type Vector = __m512i;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn load(self, pairs: &[i32]) -> __m512i {
        let pairs: &[i32; 16] = pairs.first_chunk().expect("a vector of pairs");
        // SAFETY: the set runs here; sixteen pairs lie there.
        unsafe { _mm512_loadu_si512(pairs.as_ptr().cast()) }
    }

    #[inline(always)]
    fn add(self, sums: __m512i, pairs: __m512i, pair: i32) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi32(pair))) }
    }

    #[inline(always)]
    fn store(self, sums: __m512i, to: &mut [i32]) {
        let to: &mut [i32; 16] = to.first_chunk_mut().expect("room for a vector of sums");
        // SAFETY: the set runs here; there is room for sixteen.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), sums) }
    }
}
