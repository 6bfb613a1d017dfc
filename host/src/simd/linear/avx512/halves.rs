//! Rows of blocks times 16-bit activations, sixteen rows at a time: a block's codes are one vector of 16 bits for
//! `vpmaddwd`.

use std::arch::x86_64::*;

use super::folds::{fold_four, fold_fours};
use crate::simd::avx512::vectors::Avx512;
use crate::simd::linear::half_tiles::{HalfTile, PAIRS, STRIP, Sixteen};
use crate::simd::linear::halves::{Halves, by_halves};

by_halves!(Avx512, 16, 32, "avx512f,avx512bw,avx512dq,avx512vl");

impl Halves<16> for Avx512 {
    type Values = __m512i;
    type Sums = __m512i;
    type Words = __m512i;
    type Totals = [__m512d; 2];

    #[inline(always)]
    fn load(self, x: &[i16; 32]) -> __m512i {
        // SAFETY: the set runs here; 64 bytes lie there.
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }

    #[inline(always)]
    fn none(self) -> __m512i {
        // SAFETY: the set runs here.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn products(self, weights: &[u8; 32], x: __m512i) -> __m512i {
        // SAFETY: the set runs here; 32 bytes lie there.
        unsafe {
            let weights = _mm256_loadu_si256(weights.as_ptr().cast());
            _mm512_madd_epi16(_mm512_cvtepi8_epi16(weights), x)
        }
    }

    #[inline(always)]
    fn fold(self, rows: [__m512i; 16]) -> __m512i {
        // SAFETY: the set runs here.
        unsafe {
            let mut fours = [_mm512_setzero_si512(); 4];
            for (four, rows) in fours.iter_mut().zip(rows.as_chunks::<4>().0) {
                *four = fold_four(*rows);
            }
            fold_fours(fours)
        }
    }

    #[inline(always)]
    fn splat(self, total: f64) -> [__m512d; 2] {
        // SAFETY: the set runs here.
        unsafe { [_mm512_set1_pd(total); 2] }
    }

    #[inline(always)]
    fn widen(self, words: __m512i) -> [__m512d; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                _mm512_cvtepi32_pd(_mm512_castsi512_si256(words)),
                _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(words)),
            ]
        }
    }

    #[inline(always)]
    fn add(self, totals: [__m512d; 2], a: [__m512d; 2], scales: [u16; 16]) -> [__m512d; 2] {
        // SAFETY: the set runs here; sixteen patterns are 32 bytes.
        unsafe {
            let scales = _mm512_cvtph_ps(_mm256_loadu_si256(scales.as_ptr().cast()));
            let low = _mm512_cvtps_pd(_mm512_castps512_ps256(scales));
            let high = _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(scales));
            [
                _mm512_fmadd_pd(a[0], low, totals[0]),
                _mm512_fmadd_pd(a[1], high, totals[1]),
            ]
        }
    }

    #[inline(always)]
    fn get(self, totals: [__m512d; 2]) -> [f64; 16] {
        let mut all = [0.0; 16];
        // SAFETY: the set runs here; sixteen sums fit there.
        unsafe {
            _mm512_storeu_pd(all.as_mut_ptr(), totals[0]);
            _mm512_storeu_pd(all.as_mut_ptr().add(8), totals[1]);
        }
        all
    }
}

impl HalfTile<32> for Avx512 {
    #[inline(always)]
    unsafe fn multiply(
        self,
        panel: &[Sixteen],
        x: [&[i16; 32]; STRIP],
        scales: &[f64; 32],
        minima: Option<(&[f64; 32], [f64; STRIP])>,
        totals: &mut [[f64; 32]; STRIP],
    ) {
        // SAFETY: the set runs here; the panel is as the caller promises; a pair of activations is four bytes.
        unsafe {
            let mut sums = [[_mm512_setzero_si512(); 2]; STRIP];
            for pair in 0..PAIRS {
                let weights = panel.as_ptr().add(2 * pair).cast::<__m512i>();
                let weights = [
                    _mm512_load_si512(weights),
                    _mm512_load_si512(weights.add(1)),
                ];
                for (sums, x) in sums.iter_mut().zip(x) {
                    let x =
                        _mm512_set1_epi32(x.as_ptr().add(2 * pair).cast::<i32>().read_unaligned());
                    sums[0] = _mm512_add_epi32(sums[0], _mm512_madd_epi16(weights[0], x));
                    sums[1] = _mm512_add_epi32(sums[1], _mm512_madd_epi16(weights[1], x));
                }
            }
            for (row, (sums, totals)) in sums.iter().zip(totals).enumerate() {
                for half in 0..2 {
                    let [low, high] = self.widen(sums[half]);
                    for (at, sums) in [(16 * half, low), (16 * half + 8, high)] {
                        let total = totals.as_mut_ptr().add(at);
                        let scale = _mm512_loadu_pd(scales.as_ptr().add(at));
                        let mut sum = _mm512_fmadd_pd(sums, scale, _mm512_loadu_pd(total));
                        if let Some((minima, of_x)) = minima {
                            let min = _mm512_loadu_pd(minima.as_ptr().add(at));
                            sum = _mm512_fmadd_pd(min, _mm512_set1_pd(of_x[row]), sum);
                        }
                        _mm512_storeu_pd(total, sum);
                    }
                }
            }
        }
    }
}
