//! Extremes and the exact sum of magnitudes in one pass, 16 values at a time; see [`crate::simd::exact`].

use std::arch::aarch64::*;

use tercet_core::number::{ExactSum, Stats};

use crate::simd::exact::{Extent, LANE, Total, Window};
use crate::simd::stores::Ahead;

/// Eight registers of two lanes.
const BLOCK: usize = 16 * LANE;

/// As [`Stats::of`].
#[target_feature(enable = "neon")]
pub(in crate::simd) fn stats(values: &[f32], ahead: Ahead) -> Stats {
    pass::<true>(values, ahead)
}

/// As [`Stats::extremes_of`].
#[target_feature(enable = "neon")]
pub(in crate::simd) fn extremes(values: &[f32], ahead: Ahead) -> Stats {
    pass::<false>(values, ahead)
}

#[inline]
#[target_feature(enable = "neon")]
fn pass<const SUM: bool>(values: &[f32], ahead: Ahead) -> Stats {
    let mut total = Total::EMPTY;
    for values in values.chunks(BLOCK) {
        let mut sums = Sums::zero();
        let mut extremes = Extremes::empty();
        let (steps, rest) = values.as_chunks::<16>();
        for (number, step) in steps.iter().enumerate() {
            ahead.ask(step.as_ptr(), number % 2);
            for (at, values) in step.as_chunks().0.iter().enumerate() {
                let x = load(values);
                extremes.take(x);
                if SUM {
                    sums.add(at, x);
                }
            }
        }
        for (at, rest) in rest.chunks(4).enumerate() {
            // What fills the register up is the first value, which extremes know already, and no sum has.
            let mut filled = [rest[0]; 4];
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
#[target_feature(enable = "neon")]
pub(super) fn load(values: &[f32; 4]) -> uint32x4_t {
    // SAFETY: four values lie there.
    unsafe { vld1q_u32(values.as_ptr().cast()) }
}

/// Adds the magnitudes of the patterns `smallest..=largest`, however far apart they lie.
#[cold]
#[inline(never)]
#[target_feature(enable = "neon")]
pub(super) fn add_windows(values: &[f32], smallest: u32, mut largest: u32, sum: &mut ExactSum) {
    // At most a block, so that no lane takes more than `LANE` values.
    debug_assert!(values.len() <= BLOCK);
    while largest > 0 && largest >= smallest {
        let (window, floor) = Window::below(largest);
        let floor = floor.max(smallest);
        let (from, to) = (vdupq_n_u32(floor), vdupq_n_u32(largest));
        let mut sums = Sums::zero();
        let mut next = vdupq_n_u32(0);
        for (at, values) in values.chunks(4).enumerate() {
            let mut filled = [0.0; 4];
            filled[..values.len()].copy_from_slice(values);
            let magnitude = vandq_u32(load(&filled), vdupq_n_u32(0x7FFF_FFFF));
            let within = vandq_u32(vcgeq_u32(magnitude, from), vcleq_u32(magnitude, to));
            sums.add(at % 4, vandq_u32(within, magnitude));
            let below = vcltq_u32(magnitude, from);
            next = vmaxq_u32(next, vandq_u32(below, magnitude));
        }
        window.add(sums.units(window), sum);
        largest = vmaxvq_u32(next);
    }
}

/// 16 sums under way.
pub(super) struct Sums([float64x2_t; 8]);

impl Sums {
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn zero() -> Self {
        Self([vdupq_n_f64(0.0); 8])
    }

    /// Adds four magnitudes to the quarter `at` of the sums; the signs are not looked at.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn add(&mut self, at: usize, x: uint32x4_t) {
        let magnitude = vandq_u32(x, vdupq_n_u32(0x7FFF_FFFF));
        let low = vshll_n_u32::<29>(vget_low_u32(magnitude));
        let high = vshll_high_n_u32::<29>(magnitude);
        let Self(sums) = self;
        sums[2 * at] = vaddq_f64(sums[2 * at], vreinterpretq_f64_u64(low));
        sums[2 * at + 1] = vaddq_f64(sums[2 * at + 1], vreinterpretq_f64_u64(high));
    }

    /// All of them, in the window's units: 16 counts below 2⁵².
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn units(&self, window: Window) -> u64 {
        let [first, second] = window.factors().map(|factor| vdupq_n_f64(factor));
        let mut units = vdupq_n_u64(0);
        for &sum in &self.0 {
            let sum = vmulq_f64(vmulq_f64(sum, first), second);
            units = vaddq_u64(units, vcvtq_u64_f64(sum));
        }
        vaddvq_u64(units)
    }
}

/// The extremes of four lanes.
struct Extremes {
    unsigned_max: uint32x4_t,
    signed_max: int32x4_t,
    unsigned_min: uint32x4_t,
    signed_min: int32x4_t,
}

impl Extremes {
    #[inline]
    #[target_feature(enable = "neon")]
    fn empty() -> Self {
        Self {
            unsigned_max: vdupq_n_u32(Extent::EMPTY.unsigned_max),
            signed_max: vdupq_n_s32(Extent::EMPTY.signed_max),
            unsigned_min: vdupq_n_u32(Extent::EMPTY.unsigned_min),
            signed_min: vdupq_n_s32(Extent::EMPTY.signed_min),
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn take(&mut self, x: uint32x4_t) {
        let signed = vreinterpretq_s32_u32(x);
        self.unsigned_max = vmaxq_u32(self.unsigned_max, x);
        self.signed_max = vmaxq_s32(self.signed_max, signed);
        self.unsigned_min = vminq_u32(self.unsigned_min, x);
        self.signed_min = vminq_s32(self.signed_min, signed);
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn reduce(&self) -> Extent {
        Extent {
            unsigned_max: vmaxvq_u32(self.unsigned_max),
            signed_max: vmaxvq_s32(self.signed_max),
            unsigned_min: vminvq_u32(self.unsigned_min),
            signed_min: vminvq_s32(self.signed_min),
        }
    }
}
