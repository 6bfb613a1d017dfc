//! Ternary codes by one comparison, 16 values at a time.

use std::arch::aarch64::*;

use tercet_core::number::{ExactSum, bits};
use tercet_core::quant::{Applied, QuantError};
use tercet_core::scalar;

use super::stats::{Sums, add_windows, load};
use crate::simd::exact::{LANE, Window};
use crate::simd::stores::{Ahead, Stores};

/// As [`scalar::ternary`]; it writes into the caches.
#[target_feature(enable = "neon")]
pub(in crate::simd) fn ternary(
    values: &[f32],
    threshold: u32,
    sum: bool,
    codes: &mut [i8],
    _: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    // A threshold of 0 codes zeros too, so it would count what fills a line up.
    if values.len() != codes.len() || !(1..bits::INFINITE).contains(&threshold) {
        return scalar::ternary(values, threshold, sum, codes);
    }
    let mut applied = Applied::default();
    Stores::Cached.lines(values, codes, |values, codes, _| {
        let (values, codes) = (values.as_flattened(), codes.as_flattened_mut());
        let (values, codes) = (values.as_chunks().0, codes.as_chunks_mut().0);
        applied.merge(&match sum {
            false => pass::<false>(values, threshold, codes, ahead),
            true => pass::<true>(values, threshold, codes, ahead),
        });
    });
    Ok(applied)
}

#[inline]
#[target_feature(enable = "neon")]
fn pass<const SUM: bool>(
    values: &[[f32; 16]],
    threshold: u32,
    codes: &mut [[i8; 16]],
    ahead: Ahead,
) -> Applied {
    let from = vdupq_n_u32(threshold);
    let magnitudes = vdupq_n_u32(0x7FFF_FFFF);
    let (zeros, ones) = (vdupq_n_u32(0), vdupq_n_s32(1));
    let mut coded = 0;
    let mut coded_sum = ExactSum::ZERO;
    for (values, codes) in values.chunks(LANE).zip(codes.chunks_mut(LANE)) {
        let mut sums = Sums::zero();
        let mut largest = zeros;
        for (number, (step, codes)) in values.iter().zip(codes).enumerate() {
            ahead.ask(step.as_ptr(), number % 2);
            let mut quarters = [vdup_n_s16(0); 4];
            for (at, values) in step.as_chunks().0.iter().enumerate() {
                let x = load(values);
                let magnitude = vandq_u32(x, magnitudes);
                let kept = vcgeq_u32(magnitude, from);
                let sign = vorrq_s32(vshrq_n_s32::<31>(vreinterpretq_s32_u32(x)), ones);
                let code = vandq_s32(sign, vreinterpretq_s32_u32(kept));
                quarters[at] = vmovn_s32(code);
                if SUM {
                    let kept = vandq_u32(magnitude, kept);
                    sums.add(at, kept);
                    largest = vmaxq_u32(largest, kept);
                }
            }
            let [a, b, c, d] = quarters;
            let (low, high) = (vmovn_s16(vcombine_s16(a, b)), vmovn_s16(vcombine_s16(c, d)));
            let code = vcombine_s8(low, high);
            // Codes are at most 1 in magnitude, so the sum is at most 16.
            coded += u64::from(vaddvq_u8(vreinterpretq_u8_s8(vabsq_s8(code))));
            // SAFETY: 16 codes have room there.
            unsafe { vst1q_s8(codes.as_mut_ptr(), code) };
        }
        if SUM {
            let largest = vmaxvq_u32(largest);
            match Window::new(threshold, largest.max(threshold)) {
                Some(window) => window.add(sums.units(window), &mut coded_sum),
                None => add_windows(values.as_flattened(), threshold, largest, &mut coded_sum),
            }
        }
    }
    Applied {
        coded,
        coded_sum,
        clipped: 0,
    }
}
