//! Rows of blocks times 16-bit activations, sixteen rows at a time: a block's codes are one vector of 16 bits for
//! `vpmaddwd`.

use std::arch::x86_64::*;

use super::folds::{fold_four, fold_fours};
use crate::simd::avx2::linear::halves::spread;
use crate::simd::avx512::vectors::Avx512;
use crate::simd::linear::half_planes::HalfPlanes;
use crate::simd::linear::half_tiles::{HalfTile, LANES, Pair, Sixteen};
use crate::simd::linear::halves::{Halves, by_halves};

by_halves!(Avx512, 16, 32, 8, "avx512f,avx512bw,avx512dq,avx512vl");

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

impl HalfPlanes for Avx512 {
    const STEP: usize = 64;
    type Factors = __m512i;
    type Sums = [__m512i; 2];
    type Totals = [__m512d; 2];

    #[inline(always)]
    fn factors(self, factors: &[i16; 16]) -> __m512i {
        // SAFETY: the set runs here; sixteen factors are 32 bytes.
        unsafe { _mm512_castsi256_si512(_mm256_loadu_si256(factors.as_ptr().cast())) }
    }

    #[inline(always)]
    fn none(self) -> [__m512i; 2] {
        // SAFETY: the set runs here.
        unsafe { [_mm512_setzero_si512(); 2] }
    }

    /// A pair of products is at most 2 · 63 · 127, which 16 bits hold.
    #[inline(always)]
    unsafe fn products(
        self,
        mut sums: [__m512i; 2],
        codes: *const u8,
        x: [*const i8; 2],
        factors: __m512i,
        step: usize,
    ) -> [__m512i; 2] {
        let at = 64 * step;
        // A factor for the sixteen codes of each quarter.
        let [a, b, c, d] =
            [0, 1, 2, 3].map(|quarter| (4 * step as i64 + quarter) * 0x1_0001_0001_0001);
        // SAFETY: the set runs here; the rest as the caller promises.
        unsafe {
            let codes = _mm512_loadu_si512(codes.add(at).cast());
            let places = _mm512_set_epi64(d, d, c, c, b, b, a, a);
            let factors = _mm512_permutexvar_epi16(places, factors);
            for (sums, x) in sums.iter_mut().zip(x) {
                let pairs = _mm512_maddubs_epi16(codes, _mm512_loadu_si512(x.add(at).cast()));
                *sums = _mm512_add_epi32(*sums, _mm512_madd_epi16(pairs, factors));
            }
        }
        sums
    }

    #[inline(always)]
    fn zero(self) -> [__m512d; 2] {
        self.splat(0.0)
    }

    #[inline(always)]
    fn add(self, totals: [__m512d; 2], sums: [__m512i; 2], scale: f64) -> [__m512d; 2] {
        let [high, low] = sums.map(|sums| self.widen(sums));
        // SAFETY: the set runs here.
        unsafe {
            let (above, scale) = (_mm512_set1_pd(255.0), _mm512_set1_pd(scale));
            let both = |half: usize| _mm512_fmadd_pd(high[half], above, low[half]);
            [
                _mm512_fmadd_pd(both(0), scale, totals[0]),
                _mm512_fmadd_pd(both(1), scale, totals[1]),
            ]
        }
    }

    #[inline(always)]
    fn total(self, totals: [__m512d; 2]) -> i64 {
        self.get(totals).into_iter().map(|lane| lane as i64).sum()
    }
}

impl HalfTile<32, 8> for Avx512 {
    #[inline(always)]
    unsafe fn spread(self, weights: *const i16, apart: usize, panel: &mut [Sixteen]) {
        // SAFETY: the set runs here, and so AVX2; the rest as the caller promises.
        unsafe {
            spread(weights, apart, panel, 2);
            spread(weights.add(LANES * apart), apart, &mut panel[1..], 2);
        }
    }

    #[inline(always)]
    unsafe fn multiply(
        self,
        panel: &[Sixteen],
        x: &[[Pair; 8]],
        scales: &[f64; 32],
        totals: &mut [[f64; 32]; 8],
    ) {
        // SAFETY: the set runs here; the panel is as the caller promises; a pair of activations is four bytes.
        unsafe {
            let mut sums = [[_mm512_setzero_si512(); 2]; 8];
            for (pair, x) in x.iter().enumerate() {
                let weights = panel.as_ptr().add(2 * pair).cast::<__m512i>();
                let weights = [
                    _mm512_load_si512(weights),
                    _mm512_load_si512(weights.add(1)),
                ];
                for (sums, x) in sums.iter_mut().zip(x) {
                    let x = _mm512_set1_epi32(x.as_ptr().cast::<i32>().read_unaligned());
                    sums[0] = _mm512_add_epi32(sums[0], _mm512_madd_epi16(weights[0], x));
                    sums[1] = _mm512_add_epi32(sums[1], _mm512_madd_epi16(weights[1], x));
                }
            }
            for half in 0..2 {
                let scales = scales.as_ptr().add(16 * half);
                let scales = [_mm512_loadu_pd(scales), _mm512_loadu_pd(scales.add(8))];
                for (sums, totals) in sums.iter().zip(totals.iter_mut()) {
                    let total = totals.as_mut_ptr().add(16 * half);
                    let [low, high] = self.widen(sums[half]);
                    let low = _mm512_fmadd_pd(low, scales[0], _mm512_loadu_pd(total));
                    let high = _mm512_fmadd_pd(high, scales[1], _mm512_loadu_pd(total.add(8)));
                    _mm512_storeu_pd(total, low);
                    _mm512_storeu_pd(total.add(8), high);
                }
            }
        }
    }
}
