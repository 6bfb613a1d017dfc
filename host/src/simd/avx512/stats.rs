//! Extremes and the exact sum of magnitudes in one pass, 64 values at a time; see [`crate::simd::exact`].

use std::arch::x86_64::*;

use tercet_core::number::{ExactSum, Stats};

use crate::simd::exact::{Extent, LANE, Total, WIDENED, Window};
use crate::simd::stores::Ahead;

/// Eight registers of eight lanes.
const BLOCK: usize = 64 * LANE;

/// As [`Stats::of`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn stats(values: &[f32], ahead: Ahead) -> Stats {
    pass::<true>(values, ahead)
}

/// As [`Stats::extremes_of`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn extremes(values: &[f32], ahead: Ahead) -> Stats {
    pass::<false>(values, ahead)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn pass<const SUM: bool>(values: &[f32], ahead: Ahead) -> Stats {
    let mut total = Total::EMPTY;
    for values in values.chunks(BLOCK) {
        let mut sums = Sums::zero();
        let mut extremes = Extremes::empty();
        let (steps, rest) = values.as_chunks::<64>();
        for step in steps {
            for at in 0..4 {
                ahead.ask(step.as_ptr().wrapping_add(16 * at), at / 2);
                // SAFETY: 64 values lie there.
                let x = unsafe { _mm512_loadu_si512(step.as_ptr().add(16 * at).cast()) };
                extremes.take(!0, x);
                if SUM {
                    sums.add(at, x);
                }
            }
        }
        for (at, rest) in rest.chunks(16).enumerate() {
            let (lanes, x) = load(rest);
            extremes.take(lanes, x);
            if SUM {
                sums.add(at, x);
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

/// At most 16 values, zeros after them, and which lanes they are.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn load(values: &[f32]) -> (__mmask16, __m512i) {
    let lanes = (u32::MAX >> (32 - values.len().min(16))) as __mmask16;
    // SAFETY: only the lanes of values are read.
    let x = unsafe { _mm512_maskz_loadu_epi32(lanes, values.as_ptr().cast()) };
    (lanes, x)
}

/// Adds the magnitudes of the patterns `smallest..=largest`, however far apart they lie.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn add_windows(values: &[f32], smallest: u32, mut largest: u32, sum: &mut ExactSum) {
    // At most a block, so that no lane takes more than `LANE` values.
    debug_assert!(values.len() <= BLOCK);
    while largest > 0 && largest >= smallest {
        let (window, floor) = Window::below(largest);
        let floor = floor.max(smallest);
        let (from, to) = (splat(floor), splat(largest));
        let mut sums = Sums::zero();
        let mut next = _mm512_setzero_si512();
        for (at, values) in values.chunks(16).enumerate() {
            let (_, x) = load(values);
            let magnitude = _mm512_and_si512(x, splat(0x7FFF_FFFF));
            let reached = _mm512_cmple_epu32_mask(magnitude, to);
            let within = _mm512_mask_cmpge_epu32_mask(reached, magnitude, from);
            sums.add(at % 4, _mm512_maskz_mov_epi32(within, magnitude));
            let below = _mm512_cmplt_epu32_mask(magnitude, from);
            next = _mm512_mask_max_epu32(next, below, next, magnitude);
        }
        window.add(sums.units(window), sum);
        largest = _mm512_reduce_max_epu32(next);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn splat(pattern: u32) -> __m512i {
    _mm512_set1_epi32(pattern as i32)
}

/// 64 sums under way.
pub(super) struct Sums([__m512d; 8]);

impl Sums {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn zero() -> Self {
        Self([_mm512_setzero_pd(); 8])
    }

    /// Adds 16 magnitudes to the quarter `at` of the sums; the signs are not looked at.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn add(&mut self, at: usize, x: __m512i) {
        let bits = _mm512_set1_epi64(WIDENED);
        let even = _mm512_and_si512(_mm512_slli_epi64::<29>(x), bits);
        let odd = _mm512_and_si512(_mm512_srli_epi64::<3>(x), bits);
        let Self(sums) = self;
        sums[2 * at] = _mm512_add_pd(sums[2 * at], _mm512_castsi512_pd(even));
        sums[2 * at + 1] = _mm512_add_pd(sums[2 * at + 1], _mm512_castsi512_pd(odd));
    }

    /// All of them, in the window's units: 64 counts below 2⁵².
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn units(&self, window: Window) -> u64 {
        let [first, second] = window.factors().map(|factor| _mm512_set1_pd(factor));
        let mut units = _mm512_setzero_si512();
        for &sum in &self.0 {
            let sum = _mm512_mul_pd(_mm512_mul_pd(sum, first), second);
            units = _mm512_add_epi64(units, _mm512_cvttpd_epu64(sum));
        }
        _mm512_reduce_add_epi64(units) as u64
    }
}

/// The extremes of 16 lanes.
struct Extremes {
    unsigned_max: __m512i,
    signed_max: __m512i,
    unsigned_min: __m512i,
    signed_min: __m512i,
}

impl Extremes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn empty() -> Self {
        Self {
            unsigned_max: splat(Extent::EMPTY.unsigned_max),
            signed_max: splat(Extent::EMPTY.signed_max as u32),
            unsigned_min: splat(Extent::EMPTY.unsigned_min),
            signed_min: splat(Extent::EMPTY.signed_min as u32),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn take(&mut self, lanes: __mmask16, x: __m512i) {
        self.unsigned_max = _mm512_mask_max_epu32(self.unsigned_max, lanes, self.unsigned_max, x);
        self.signed_max = _mm512_mask_max_epi32(self.signed_max, lanes, self.signed_max, x);
        self.unsigned_min = _mm512_mask_min_epu32(self.unsigned_min, lanes, self.unsigned_min, x);
        self.signed_min = _mm512_mask_min_epi32(self.signed_min, lanes, self.signed_min, x);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn reduce(&self) -> Extent {
        Extent {
            unsigned_max: _mm512_reduce_max_epu32(self.unsigned_max),
            signed_max: _mm512_reduce_max_epi32(self.signed_max),
            unsigned_min: _mm512_reduce_min_epu32(self.unsigned_min),
            signed_min: _mm512_reduce_min_epi32(self.signed_min),
        }
    }
}
