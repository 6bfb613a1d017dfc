//! Tiles of 16-bit activations: 32 rows of weights by eight of activations.

use std::arch::x86_64::*;

use crate::simd::avx2::linear::halves::spread;
use crate::simd::avx512::vectors::Avx512;
use crate::simd::linear::half_tiles::{HalfTile, LANES, PanelStrip, Sixteen, by_half_tiles};

by_half_tiles!(Avx512, 32, 8, "avx512f,avx512bw,avx512dq,avx512vl");

/// How a set that has AVX-512 adds products of pairs, by lanes.
pub(in crate::simd) trait AddPairs: Copy {
    /// Returns sum + a₀ · b₀ + a₁ · b₁.
    fn add(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i;
}

impl AddPairs for Avx512 {
    #[inline(always)]
    fn add(self, sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)) }
    }
}

impl<S: AddPairs> HalfTile<32, 8> for S {
    #[inline(always)]
    unsafe fn spread(self, weights: *const i16, apart: usize, panel: &mut [Sixteen]) {
        // SAFETY: the set runs here, and so AVX2; the rest as the caller promises.
        unsafe {
            spread(weights, apart, panel, 2);
            spread(weights.add(LANES * apart), apart, &mut panel[1..], 2);
        }
    }

    /// Sixteen rows of weights at a time, so that their totals stay in registers.
    #[inline(always)]
    fn multiply(self, strip: PanelStrip<'_, 32, 8>, totals: &mut [[f64; 32]; 8]) {
        for half in 0..2 {
            // SAFETY: the set runs here; sixteen of 32 totals and scales are two vectors, sixteen pairs one, and a pair of
            // activations is four bytes.
            unsafe {
                let mut own = [[_mm512_setzero_pd(); 2]; 8];
                for (own, totals) in own.iter_mut().zip(totals.iter()) {
                    let totals = totals.as_ptr().add(16 * half);
                    *own = [_mm512_loadu_pd(totals), _mm512_loadu_pd(totals.add(8))];
                }
                for (panel, x, scales) in strip.runs() {
                    let mut sums = [_mm512_setzero_si512(); 8];
                    for (weights, x) in panel.as_chunks::<2>().0.iter().zip(x) {
                        let weights = _mm512_load_si512(weights.as_ptr().add(half).cast());
                        for (sum, x) in sums.iter_mut().zip(x) {
                            let x = _mm512_set1_epi32(x.as_ptr().cast::<i32>().read_unaligned());
                            *sum = self.add(*sum, weights, x);
                        }
                    }
                    let scales = scales.as_ptr().add(16 * half);
                    let scales = [_mm512_loadu_pd(scales), _mm512_loadu_pd(scales.add(8))];
                    for (own, sum) in own.iter_mut().zip(sums) {
                        let low = _mm512_cvtepi32_pd(_mm512_castsi512_si256(sum));
                        let high = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(sum));
                        own[0] = _mm512_fmadd_pd(low, scales[0], own[0]);
                        own[1] = _mm512_fmadd_pd(high, scales[1], own[1]);
                    }
                }
                for (own, totals) in own.into_iter().zip(totals.iter_mut()) {
                    let totals = totals.as_mut_ptr().add(16 * half);
                    _mm512_storeu_pd(totals, own[0]);
                    _mm512_storeu_pd(totals.add(8), own[1]);
                }
            }
        }
    }
}
