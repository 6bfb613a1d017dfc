//! Extremes and the exact sum of magnitudes in one pass, 32 values at a time; see [`crate::simd::exact`].

use std::arch::x86_64::*;

use tercet_core::number::{ExactSum, Stats};

use crate::simd::exact::{Extent, LANE, Total, WIDENED, Window};
use crate::simd::stores::Ahead;

/// Eight registers of four lanes.
const BLOCK: usize = 32 * LANE;

/// As [`Stats::of`].
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn stats(values: &[f32], ahead: Ahead) -> Stats {
    pass::<true>(values, ahead)
}

/// As [`Stats::extremes_of`].
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn extremes(values: &[f32], ahead: Ahead) -> Stats {
    pass::<false>(values, ahead)
}

#[inline]
#[target_feature(enable = "avx2")]
fn pass<const SUM: bool>(values: &[f32], ahead: Ahead) -> Stats {
    let mut total = Total::EMPTY;
    for values in values.chunks(BLOCK) {
        let mut sums = Sums::zero();
        let mut extremes = Extremes::empty();
        let (steps, rest) = values.as_chunks::<32>();
        for step in steps {
            ahead.ask(step.as_ptr(), 0);
            ahead.ask(step.as_ptr().wrapping_add(16), 1);
            for (at, values) in step.as_chunks().0.iter().enumerate() {
                let x = load(values);
                extremes.take(x);
                if SUM {
                    sums.add(at, x);
                }
            }
        }
        for (at, rest) in rest.chunks(8).enumerate() {
            // What fills the register up is the first value, which extremes know already, and no sum has.
            let mut filled = [rest[0]; 8];
            filled[..rest.len()].copy_from_slice(rest);
            extremes.take(load(&filled));
            if SUM {
                filled[rest.len()..].fill(0.0);
                sums.add(at, load(&filled));
            }
        }
        let extent = extremes.reduce();
        if !total.join(extent) {
            break;
        }
        if SUM {
            let (smallest, largest) = (extent.smallest(), extent.largest());
            match Window::new(smallest, largest) {
                Some(window) => window.add(sums.units(window), &mut total.sum),
                None => add_windows(values, 0, largest, &mut total.sum),
            }
        }
    }
    total.stats(values)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(values: &[f32; 8]) -> __m256i {
    // SAFETY: eight values lie there.
    unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
}

/// Adds the magnitudes of the patterns `smallest..=largest`, however far apart they lie.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
pub(super) fn add_windows(values: &[f32], smallest: u32, mut largest: u32, sum: &mut ExactSum) {
    // At most a block, so that no lane takes more than `LANE` values.
    debug_assert!(values.len() <= BLOCK);
    while largest > 0 && largest >= smallest {
        let (window, floor) = Window::below(largest);
        let floor = floor.max(smallest);
        let (from, to) = (splat(floor), splat(largest));
        let mut sums = Sums::zero();
        let mut next = _mm256_setzero_si256();
        for (at, values) in values.chunks(8).enumerate() {
            let mut filled = [0.0; 8];
            filled[..values.len()].copy_from_slice(values);
            // 31 bits, so that signed comparisons do.
            let magnitude = _mm256_and_si256(load(&filled), splat(0x7FFF_FFFF));
            let below = _mm256_cmpgt_epi32(from, magnitude);
            let outside = _mm256_or_si256(below, _mm256_cmpgt_epi32(magnitude, to));
            sums.add(at % 4, _mm256_andnot_si256(outside, magnitude));
            next = _mm256_max_epu32(next, _mm256_and_si256(below, magnitude));
        }
        window.add(sums.units(window), sum);
        largest = lanes(next).into_iter().fold(0, u32::max);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(pattern: u32) -> __m256i {
    _mm256_set1_epi32(pattern as i32)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lanes(x: __m256i) -> [u32; 8] {
    let mut lanes = [0; 8];
    // SAFETY: eight lanes have room there.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), x) };
    lanes
}

/// 32 sums under way.
pub(super) struct Sums([__m256d; 8]);

impl Sums {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn zero() -> Self {
        Self([_mm256_setzero_pd(); 8])
    }

    /// Adds eight magnitudes to the quarter `at` of the sums; the signs are not looked at.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn add(&mut self, at: usize, x: __m256i) {
        let bits = _mm256_set1_epi64x(WIDENED);
        let even = _mm256_and_si256(_mm256_slli_epi64::<29>(x), bits);
        let odd = _mm256_and_si256(_mm256_srli_epi64::<3>(x), bits);
        let Self(sums) = self;
        sums[2 * at] = _mm256_add_pd(sums[2 * at], _mm256_castsi256_pd(even));
        sums[2 * at + 1] = _mm256_add_pd(sums[2 * at + 1], _mm256_castsi256_pd(odd));
    }

    /// All of them, in the window's units: 32 counts below 2⁵².
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn units(&self, window: Window) -> u64 {
        let [first, second] = window.factors().map(|factor| _mm256_set1_pd(factor));
        // From 2⁵² on an f64's mantissa counts in ones.
        let whole = _mm256_set1_pd((1u64 << 52) as f64);
        let mantissa = _mm256_set1_epi64x((1 << 52) - 1);
        let mut units = _mm256_setzero_si256();
        for &sum in &self.0 {
            let sum = _mm256_mul_pd(_mm256_mul_pd(sum, first), second);
            let count = _mm256_castpd_si256(_mm256_add_pd(sum, whole));
            units = _mm256_add_epi64(units, _mm256_and_si256(count, mantissa));
        }
        let (low, high) = (
            _mm256_castsi256_si128(units),
            _mm256_extracti128_si256::<1>(units),
        );
        let units = _mm_add_epi64(low, high);
        (_mm_extract_epi64::<0>(units) as u64) + (_mm_extract_epi64::<1>(units) as u64)
    }
}

/// The extremes of eight lanes.
struct Extremes {
    unsigned_max: __m256i,
    signed_max: __m256i,
    unsigned_min: __m256i,
    signed_min: __m256i,
}

impl Extremes {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn empty() -> Self {
        Self {
            unsigned_max: splat(Extent::EMPTY.unsigned_max),
            signed_max: splat(Extent::EMPTY.signed_max as u32),
            unsigned_min: splat(Extent::EMPTY.unsigned_min),
            signed_min: splat(Extent::EMPTY.signed_min as u32),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn take(&mut self, x: __m256i) {
        self.unsigned_max = _mm256_max_epu32(self.unsigned_max, x);
        self.signed_max = _mm256_max_epi32(self.signed_max, x);
        self.unsigned_min = _mm256_min_epu32(self.unsigned_min, x);
        self.signed_min = _mm256_min_epi32(self.signed_min, x);
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn reduce(&self) -> Extent {
        // The four trees side by side.
        let [umax, smax, umin, smin] = [
            lanes(self.unsigned_max),
            lanes(self.signed_max),
            lanes(self.unsigned_min),
            lanes(self.signed_min),
        ];
        Extent {
            unsigned_max: umax.into_iter().fold(0, u32::max),
            signed_max: smax.into_iter().fold(i32::MIN, |max, x| max.max(x as i32)),
            unsigned_min: umin.into_iter().fold(u32::MAX, u32::min),
            signed_min: smin.into_iter().fold(i32::MAX, |min, x| min.min(x as i32)),
        }
    }
}
