//! Rows of blocks times 16-bit activations, eight rows at a time: codes are widened to 16 bits for `vpmaddwd`.

use std::arch::x86_64::*;

use super::sums::fold_eight;
use crate::simd::avx2::vectors::Avx2;
use crate::simd::linear::half_tiles::{HalfTile, PAIRS, STRIP, Sixteen};
use crate::simd::linear::halves::{Halves, by_halves};

by_halves!(Avx2, 8, 16, "avx2,f16c,fma");

impl Halves<8> for Avx2 {
    type Values = [__m256i; 2];
    type Sums = __m256i;
    type Words = __m256i;
    type Totals = [__m256d; 2];

    #[inline(always)]
    fn load(self, x: &[i16; 32]) -> [__m256i; 2] {
        let from = x.as_ptr().cast::<__m256i>();
        // SAFETY: the set runs here; 64 bytes lie there.
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }

    #[inline(always)]
    fn none(self) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn products(self, weights: &[u8; 32], x: [__m256i; 2]) -> __m256i {
        let from = weights.as_ptr().cast::<__m128i>();
        // SAFETY: the set runs here; 32 bytes lie there.
        unsafe {
            let low = _mm256_cvtepi8_epi16(_mm_loadu_si128(from));
            let high = _mm256_cvtepi8_epi16(_mm_loadu_si128(from.add(1)));
            _mm256_add_epi32(_mm256_madd_epi16(low, x[0]), _mm256_madd_epi16(high, x[1]))
        }
    }

    #[inline(always)]
    fn fold(self, rows: [__m256i; 8]) -> __m256i {
        // SAFETY: the set runs here.
        unsafe { fold_eight(rows) }
    }

    #[inline(always)]
    fn splat(self, total: f64) -> [__m256d; 2] {
        // SAFETY: the set runs here.
        unsafe { [_mm256_set1_pd(total); 2] }
    }

    #[inline(always)]
    fn widen(self, words: __m256i) -> [__m256d; 2] {
        // SAFETY: the set runs here.
        unsafe {
            [
                _mm256_cvtepi32_pd(_mm256_castsi256_si128(words)),
                _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(words)),
            ]
        }
    }

    #[inline(always)]
    fn add(self, totals: [__m256d; 2], a: [__m256d; 2], scales: [u16; 8]) -> [__m256d; 2] {
        // SAFETY: the set runs here; eight patterns are 16 bytes.
        unsafe {
            let scales = _mm256_cvtph_ps(_mm_loadu_si128(scales.as_ptr().cast()));
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(scales));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(scales));
            [
                _mm256_fmadd_pd(a[0], low, totals[0]),
                _mm256_fmadd_pd(a[1], high, totals[1]),
            ]
        }
    }

    #[inline(always)]
    fn get(self, totals: [__m256d; 2]) -> [f64; 8] {
        let mut all = [0.0; 8];
        // SAFETY: the set runs here; eight sums fit there.
        unsafe {
            _mm256_storeu_pd(all.as_mut_ptr(), totals[0]);
            _mm256_storeu_pd(all.as_mut_ptr().add(4), totals[1]);
        }
        all
    }
}

impl HalfTile<16> for Avx2 {
    #[inline(always)]
    unsafe fn multiply(
        self,
        panel: &[Sixteen],
        x: [&[i16; 32]; STRIP],
        scales: &[f64; 16],
        minima: Option<(&[f64; 16], [f64; STRIP])>,
        totals: &mut [[f64; 16]; STRIP],
    ) {
        // SAFETY: the set runs here; the panel is as the caller promises; a pair of activations is four bytes.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; STRIP];
            for pair in 0..PAIRS {
                let weights = panel.as_ptr().add(pair).cast::<__m256i>();
                let weights = [
                    _mm256_load_si256(weights),
                    _mm256_load_si256(weights.add(1)),
                ];
                for (sums, x) in sums.iter_mut().zip(x) {
                    let x =
                        _mm256_set1_epi32(x.as_ptr().add(2 * pair).cast::<i32>().read_unaligned());
                    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(weights[0], x));
                    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(weights[1], x));
                }
            }
            for (row, (sums, totals)) in sums.iter().zip(totals).enumerate() {
                for half in 0..2 {
                    let [low, high] = self.widen(sums[half]);
                    for (at, sums) in [(8 * half, low), (8 * half + 4, high)] {
                        let total = totals.as_mut_ptr().add(at);
                        let scale = _mm256_loadu_pd(scales.as_ptr().add(at));
                        let mut sum = _mm256_fmadd_pd(sums, scale, _mm256_loadu_pd(total));
                        if let Some((minima, of_x)) = minima {
                            let min = _mm256_loadu_pd(minima.as_ptr().add(at));
                            sum = _mm256_fmadd_pd(min, _mm256_set1_pd(of_x[row]), sum);
                        }
                        _mm256_storeu_pd(total, sum);
                    }
                }
            }
        }
    }
}
