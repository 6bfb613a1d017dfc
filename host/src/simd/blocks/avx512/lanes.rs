//! The block operations for vectors of 512 bits.

use std::arch::x86_64::*;

use half::f16;

use crate::simd::Ahead;
use crate::simd::avx512::vectors::Avx512;
use crate::simd::blocks::lanes::{Choosing, Lanes};
use crate::simd::vectors::operations;

impl Lanes for Avx512 {
    type Count = u32;

    #[inline(always)]
    fn ask(self, line: &[f32]) {
        Ahead::STREAM.ask(line.as_ptr());
    }

    operations! {
        fn none(self) -> u32 { 0 }
        fn count(self, count: u32, yes: __mmask16) -> u32 { count + yes.count_ones() }
        fn counted(self, count: u32) -> u32 { count }
        fn keep(self, yes: __mmask16, x: __m512i) -> __m512i { _mm512_maskz_mov_epi32(yes, x) }
        fn add_kept_f32(self, sum: __m512i, yes: __mmask16, x: __m512i) -> __m512i {
            let sum = _mm512_castsi512_ps(sum);
            _mm512_castps_si512(_mm512_mask_add_ps(sum, yes, sum, _mm512_castsi512_ps(x)))
        }
        fn both(self, a: __mmask16, b: __mmask16) -> __mmask16 { a & b }
        fn top(self, x: __m512i) -> i32 { _mm512_reduce_max_epi32(x) }
        fn sum_f32(self, x: __m512i) -> f32 { _mm512_reduce_add_ps(_mm512_castsi512_ps(x)) }
        fn sum_f64(self, x: __m512d) -> f64 { _mm512_reduce_add_pd(x) }
        fn append(self, yes: __mmask16, values: &[f32], out: &mut [f32]) -> usize {
            let (Some(values), Some(out)) = (values.first_chunk(), out.first_chunk_mut()) else {
                return 0;
            };
            let x = _mm512_abs_ps(super::load(values));
            super::store(out, _mm512_maskz_compress_ps(yes, x));
            yes.count_ones() as usize
        }
        fn narrow(self, scale: f32) -> f16 { super::to_f16(scale) }
        fn wide(self, scale: f16) -> f32 { super::to_f32(scale) }
    }
}

impl Choosing for Avx512 {
    type Sixteen = __m512i;

    #[inline(always)]
    unsafe fn twos(self, from: *const u8) -> __m512i {
        // SAFETY: the set runs here; the caller's promise about 32 bits.
        unsafe {
            let codes = _mm512_set1_epi32(from.cast::<i32>().read_unaligned());
            let shifts =
                _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            _mm512_srlv_epi32(codes, shifts)
        }
    }

    operations! {
        fn sixteen(self, scale: f32) -> __m512i {
            let codes = _mm512_setr_ps(
                -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0,
            );
            _mm512_castps_si512(_mm512_mul_ps(codes, _mm512_set1_ps(scale)))
        }
        fn choose_of_sixteen(self, products: __m512i, codes: __m512i, shift: u32) -> __m512i {
            // The selection uses only four bits of a lane.
            let codes = _mm512_srl_epi32(codes, _mm_cvtsi32_si128(shift as i32));
            _mm512_permutexvar_epi32(codes, products)
        }
    }
}
