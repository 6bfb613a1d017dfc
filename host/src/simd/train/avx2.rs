//! Products of two rows' codes with AVX2, in pairs of 16 bits.

use std::arch::x86_64::*;

use super::weights::{CodeProducts, pair};

/// AVX2, which this machine supports.
#[derive(Clone, Copy)]
pub(super) struct Products(());

impl Products {
    /// Returns the set; only code that is compiled for it can call this.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn here() -> Self {
        Self(())
    }
}

impl CodeProducts for Products {
    const DEPTH: usize = 2;
    const COLUMNS: usize = 8;
    const OFFSET: i32 = 0;
    type Vector = __m256i;
    type Wide = __m256i;

    #[inline(always)]
    fn inputs(codes: [i8; 4]) -> i32 {
        pair(codes)
    }

    #[inline(always)]
    fn gradients(codes: [i8; 4]) -> i32 {
        pair(codes)
    }

    #[inline(always)]
    fn splat(self, sum: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_set1_epi32(sum) }
    }

    #[inline(always)]
    fn load(self, lanes: &[i32]) -> __m256i {
        let lanes: &[i32; 8] = lanes.first_chunk().expect("a vector of lanes");
        // SAFETY: the set runs here; eight lanes are there.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn add(self, sums: __m256i, inputs: __m256i, gradients: i32) -> __m256i {
        // SAFETY: the set runs here.
        unsafe {
            _mm256_add_epi32(
                sums,
                _mm256_madd_epi16(inputs, _mm256_set1_epi32(gradients)),
            )
        }
    }

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn widen(self, wide: [__m256i; 2], sums: __m256i, shift: u32) -> [__m256i; 2] {
        // SAFETY: the set runs here.
        unsafe {
            let shift = _mm_cvtsi32_si128(shift as i32);
            let low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(sums));
            let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(sums));
            [
                _mm256_add_epi64(wide[0], _mm256_sll_epi64(low, shift)),
                _mm256_add_epi64(wide[1], _mm256_sll_epi64(high, shift)),
            ]
        }
    }

    #[inline(always)]
    fn store(self, sums: __m256i, to: &mut [i32]) {
        let to: &mut [i32; 8] = to.first_chunk_mut().expect("room for a vector of sums");
        // SAFETY: the set runs here; eight sums fit there.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), sums) }
    }

    #[inline(always)]
    fn add_to(self, wide: [__m256i; 2], to: &mut [i64]) {
        let to: &mut [i64; 8] = to.first_chunk_mut().expect("a vector of sums");
        // SAFETY: the set runs here; eight sums are there.
        unsafe {
            for (at, wide) in wide.into_iter().enumerate() {
                let to = to.as_mut_ptr().add(4 * at);
                _mm256_storeu_si256(
                    to.cast(),
                    _mm256_add_epi64(_mm256_loadu_si256(to.cast()), wide),
                );
            }
        }
    }
}
