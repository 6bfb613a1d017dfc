//! Products of pairs with AVX2.

use std::arch::x86_64::*;

use super::weights::PairProducts;

/// AVX2, which this machine supports.
#[derive(Clone, Copy)]
pub(super) struct Pairs(());

impl Pairs {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn here() -> Self {
        Self(())
    }
}

impl PairProducts for Pairs {
    const COLUMNS: usize = 8;
    type Vector = __m256i;

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn load(self, pairs: &[i32]) -> __m256i {
        let pairs: &[i32; 8] = pairs.first_chunk().expect("a vector of pairs");
        // SAFETY: the set runs here; eight pairs lie there.
        unsafe { _mm256_loadu_si256(pairs.as_ptr().cast()) }
    }

    #[inline(always)]
    fn add(self, sums: __m256i, pairs: __m256i, pair: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi32(pair))) }
    }

    #[inline(always)]
    fn store(self, sums: __m256i, to: &mut [i32]) {
        let to: &mut [i32; 8] = to.first_chunk_mut().expect("room for a vector of sums");
        // SAFETY: the set runs here; there is room for eight.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), sums) }
    }
}
