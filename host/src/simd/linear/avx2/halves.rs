//! Rows of blocks times 16-bit activations, eight rows at a time: codes are widened to 16 bits for `vpmaddwd`.

use std::arch::x86_64::*;

use super::sums::fold_eight;
use crate::simd::avx2::vectors::Avx2;
use crate::simd::linear::half_planes::HalfPlanes;
use crate::simd::linear::half_tiles::{HalfTile, LANES, PAIRS, PanelStrip, Sixteen, by_half_tiles};
use crate::simd::linear::halves::{Halves, by_halves};

by_halves!(Avx2, 8, "avx2,f16c,fma");
by_half_tiles!(Avx2, 16, 6, "avx2,f16c,fma");

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

impl HalfPlanes for Avx2 {
    const STEP: usize = 32;
    /// The first eight in both halves, and the others.
    type Factors = [__m256i; 2];
    type Sums = [__m256i; 2];
    type Totals = [__m256d; 2];

    #[inline(always)]
    fn factors(self, factors: &[i16; 16]) -> [__m256i; 2] {
        // SAFETY: the set runs here; sixteen factors are 32 bytes.
        unsafe {
            let all = _mm256_loadu_si256(factors.as_ptr().cast());
            [
                _mm256_permute2x128_si256::<0x00>(all, all),
                _mm256_permute2x128_si256::<0x11>(all, all),
            ]
        }
    }

    #[inline(always)]
    fn none(self) -> [__m256i; 2] {
        // SAFETY: the set runs here.
        unsafe { [_mm256_setzero_si256(); 2] }
    }

    /// A pair of products is at most 2 · 63 · 127, which 16 bits hold.
    #[inline(always)]
    unsafe fn products(
        self,
        mut sums: [__m256i; 2],
        codes: *const u8,
        x: [*const i8; 2],
        factors: [__m256i; 2],
        step: usize,
    ) -> [__m256i; 2] {
        let at = 32 * step;
        // The two bytes of a factor, for the sixteen codes of either half.
        let two = 0x0100_0100_0100_0100 + 0x0404_0404_0404_0404 * (step % 4) as i64;
        // SAFETY: the set runs here; the rest as the caller promises.
        unsafe {
            let codes = _mm256_loadu_si256(codes.add(at).cast());
            let next = two + 0x0202_0202_0202_0202;
            let places = _mm256_set_epi64x(next, next, two, two);
            let factors = _mm256_shuffle_epi8(factors[step / 4], places);
            for (sums, x) in sums.iter_mut().zip(x) {
                let pairs = _mm256_maddubs_epi16(codes, _mm256_loadu_si256(x.add(at).cast()));
                *sums = _mm256_add_epi32(*sums, _mm256_madd_epi16(pairs, factors));
            }
        }
        sums
    }

    #[inline(always)]
    fn zero(self) -> [__m256d; 2] {
        self.splat(0.0)
    }

    #[inline(always)]
    fn add(self, totals: [__m256d; 2], sums: [__m256i; 2], scale: f64) -> [__m256d; 2] {
        let [high, low] = sums.map(|sums| self.widen(sums));
        // SAFETY: the set runs here.
        unsafe {
            let (above, scale) = (_mm256_set1_pd(255.0), _mm256_set1_pd(scale));
            let both = |half: usize| _mm256_fmadd_pd(high[half], above, low[half]);
            [
                _mm256_fmadd_pd(both(0), scale, totals[0]),
                _mm256_fmadd_pd(both(1), scale, totals[1]),
            ]
        }
    }

    #[inline(always)]
    fn total(self, totals: [__m256d; 2]) -> i64 {
        self.get(totals).into_iter().map(|lane| lane as i64).sum()
    }
}

impl HalfTile<16, 6> for Avx2 {
    #[inline(always)]
    unsafe fn spread(self, weights: *const i16, apart: usize, panel: &mut [Sixteen]) {
        // SAFETY: the set runs here; the rest as the caller promises.
        unsafe { spread(weights, apart, panel, 1) };
    }

    #[inline(always)]
    fn multiply(self, strip: PanelStrip<'_, 16, 6>, totals: &mut [[f64; 16]; 6]) {
        for (panel, x, scales) in strip.runs() {
            let mut sums = [[Halves::none(self); 2]; 6];
            for (weights, x) in panel.iter().zip(x) {
                // SAFETY: the set runs here; sixteen pairs are two vectors, a pair of activations is four bytes.
                unsafe {
                    let weights = std::ptr::from_ref(weights).cast::<__m256i>();
                    let weights = [
                        _mm256_load_si256(weights),
                        _mm256_load_si256(weights.add(1)),
                    ];
                    for (sums, x) in sums.iter_mut().zip(x) {
                        let x = _mm256_set1_epi32(x.as_ptr().cast::<i32>().read_unaligned());
                        sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(weights[0], x));
                        sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(weights[1], x));
                    }
                }
            }
            for half in 0..2 {
                // SAFETY: the set runs here; eight of sixteen scales and totals are two vectors.
                unsafe {
                    // Read before anything is written, which could lie at the same place for all that the compiler knows.
                    let scales = scales.as_ptr().add(8 * half);
                    let scales = [_mm256_loadu_pd(scales), _mm256_loadu_pd(scales.add(4))];
                    for (sums, totals) in sums.iter().zip(totals.iter_mut()) {
                        let total = totals.as_mut_ptr().add(8 * half);
                        let [low, high] = self.widen(sums[half]);
                        let low = _mm256_fmadd_pd(low, scales[0], _mm256_loadu_pd(total));
                        let high = _mm256_fmadd_pd(high, scales[1], _mm256_loadu_pd(total.add(4)));
                        _mm256_storeu_pd(total, low);
                        _mm256_storeu_pd(total.add(4), high);
                    }
                }
            }
        }
    }
}

/// Writes 32 columns of sixteen rows to every `step`-th of a panel, in its order.
///
/// # Safety
/// AVX2 must run here. The rows begin `apart` weights from each other, and the panel has `step` for each of [`PAIRS`].
#[inline(always)]
pub(in crate::simd) unsafe fn spread(
    weights: *const i16,
    apart: usize,
    panel: &mut [Sixteen],
    step: usize,
) {
    const EIGHT: usize = LANES / 2;
    assert!(panel.len() > (PAIRS - 1) * step);
    // SAFETY: as the caller promises; the panel's length was checked.
    unsafe {
        for half in 0..2 {
            for eight in 0..2 {
                // Eight pairs of columns of eight rows become eight rows of a pair.
                let mut rows = [_mm256_setzero_si256(); EIGHT];
                for (number, row) in rows.iter_mut().enumerate() {
                    let from = weights.add((EIGHT * eight + number) * apart + 16 * half);
                    *row = _mm256_loadu_si256(from.cast());
                }
                for (number, pairs) in transposed(rows).into_iter().enumerate() {
                    let place = panel.as_mut_ptr().add((EIGHT * half + number) * step);
                    _mm256_store_si256(place.cast::<__m256i>().add(eight), pairs);
                }
            }
        }
    }
}

/// Exchanges rows and columns of dwords.
///
/// # Safety
/// AVX2 must run here.
#[inline(always)]
unsafe fn transposed(v: [__m256i; 8]) -> [__m256i; 8] {
    // SAFETY: as the caller promises.
    unsafe {
        let ones = |a, b| [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)];
        let twos = |a, b| [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)];
        // Columns 0 and 4, 1 and 5, 2 and 6, 3 and 7 of four rows.
        let four = |[a, b, c, d]: [__m256i; 4]| {
            let ([a, b], [c, d]) = (ones(a, b), ones(c, d));
            let ([a, b], [c, d]) = (twos(a, c), twos(b, d));
            [a, b, c, d]
        };
        let (first, second) = (
            four([v[0], v[1], v[2], v[3]]),
            four([v[4], v[5], v[6], v[7]]),
        );
        let mut columns = v;
        for at in 0..4 {
            columns[at] = _mm256_permute2x128_si256::<0x20>(first[at], second[at]);
            columns[4 + at] = _mm256_permute2x128_si256::<0x31>(first[at], second[at]);
        }
        columns
    }
}
