//! The block operations for vectors of 256 bits.

use std::arch::x86_64::*;

use half::f16;

use crate::simd::Ahead;
use crate::simd::avx2::vectors::Avx2;
use crate::simd::blocks::lanes::{Choosing, Lanes};
use crate::simd::vectors::operations;

impl Lanes for Avx2 {
    type Count = u32;

    #[inline(always)]
    fn ask(self, line: &[f32]) {
        Ahead::STREAM.ask(line.as_ptr());
    }

    operations! {
        fn none(self) -> u32 { 0 }
        fn count(self, count: u32, yes: __m256i) -> u32 {
            count + _mm256_movemask_ps(_mm256_castsi256_ps(yes)).count_ones()
        }
        fn counted(self, count: u32) -> u32 { count }
        fn keep(self, yes: __m256i, x: __m256i) -> __m256i { _mm256_and_si256(yes, x) }
        fn add_kept_f32(self, sum: __m256i, yes: __m256i, x: __m256i) -> __m256i {
            let kept = _mm256_castsi256_ps(_mm256_and_si256(yes, x));
            _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(sum), kept))
        }
        fn both(self, a: __m256i, b: __m256i) -> __m256i { _mm256_and_si256(a, b) }
        fn top(self, x: __m256i) -> i32 {
            let max = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            let max = _mm_max_epi32(max, _mm_unpackhi_epi64(max, max));
            _mm_cvtsi128_si32(_mm_max_epi32(max, _mm_shuffle_epi32::<1>(max)))
        }
        fn sum_f32(self, x: __m256i) -> f32 {
            let x = _mm256_castsi256_ps(x);
            let sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
            _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)))
        }
        fn sum_f64(self, x: __m256d) -> f64 {
            let sum = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
            _mm_cvtsd_f64(_mm_add_sd(sum, _mm_unpackhi_pd(sum, sum)))
        }
        fn narrow(self, scale: f32) -> f16 { super::to_f16(scale) }
        fn wide(self, scale: f16) -> f32 { super::to_f32(scale) }
    }
}

impl Choosing for Avx2 {
    type Sixteen = __m256i;

    #[inline(always)]
    unsafe fn twos(self, from: *const u8) -> __m256i {
        // SAFETY: the set runs here; the caller's promise about 16 bits.
        unsafe {
            let codes = _mm256_set1_epi32(from.cast::<u16>().read_unaligned().into());
            _mm256_srlv_epi32(codes, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14))
        }
    }

    operations! {
        fn sixteen(self, scale: f32) -> __m256i { _mm256_castps_si256(_mm256_set1_ps(scale)) }
        fn choose_of_sixteen(self, scale: __m256i, codes: __m256i, shift: u32) -> __m256i {
            // A product takes no longer than a selection by 16, which does not exist.
            let codes = _mm256_srl_epi32(codes, _mm_cvtsi32_si128(shift as i32));
            let codes = _mm256_and_si256(codes, _mm256_set1_epi32(15));
            let codes = _mm256_cvtepi32_ps(_mm256_sub_epi32(codes, _mm256_set1_epi32(8)));
            _mm256_castps_si256(_mm256_mul_ps(codes, _mm256_castsi256_ps(scale)))
        }
    }
}
