//! Ternary codes by one comparison, 64 values at a time.

use std::arch::x86_64::*;

use tercet_core::number::{ExactSum, bits};
use tercet_core::quant::{Applied, QuantError};
use tercet_core::scalar;

use super::stats::{Sums, add_windows};
use crate::simd::exact::{LANE, Window};
use crate::simd::stores::{Ahead, Stores};

/// As [`scalar::ternary`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(in crate::simd) fn ternary(
    values: &[f32],
    threshold: u32,
    sum: bool,
    codes: &mut [i8],
    stores: Stores,
    ahead: Ahead,
) -> Result<Applied, QuantError> {
    // A threshold of 0 codes zeros too, so it would count what fills a line up.
    if values.len() != codes.len() || !(1..bits::INFINITE).contains(&threshold) {
        return scalar::ternary(values, threshold, sum, codes);
    }
    let mut applied = Applied::default();
    stores.lines(values, codes, |values, codes, streaming| {
        applied.merge(&match (sum, streaming) {
            (false, false) => pass::<false, false>(values, threshold, codes, ahead),
            (false, true) => pass::<false, true>(values, threshold, codes, ahead),
            (true, false) => pass::<true, false>(values, threshold, codes, ahead),
            (true, true) => pass::<true, true>(values, threshold, codes, ahead),
        });
    });
    Ok(applied)
}

/// Whole steps; where `STREAM`, codes on a line's boundary, and a fence to follow.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
fn pass<const SUM: bool, const STREAM: bool>(
    values: &[[f32; 64]],
    threshold: u32,
    codes: &mut [[i8; 64]],
    ahead: Ahead,
) -> Applied {
    // Signed, the patterns from the threshold up are those of positive values; unsigned, those from it with a sign are of
    // negative ones.
    let positive = _mm512_set1_epi32(threshold as i32);
    let negative = _mm512_set1_epi32((threshold | 1 << 31) as i32);
    let (zeros, ones) = (_mm512_setzero_si512(), _mm512_set1_epi8(1));
    let mut coded = 0;
    let mut coded_sum = ExactSum::ZERO;
    for (values, codes) in values.chunks(LANE).zip(codes.chunks_mut(LANE)) {
        let mut sums = Sums::zero();
        let mut largest = zeros;
        for (step, codes) in values.iter().zip(codes) {
            let (mut above, mut below) = ([0; 4], [0; 4]);
            for at in 0..4 {
                ahead.ask(step.as_ptr().wrapping_add(16 * at), at / 2);
                // SAFETY: 64 values lie there.
                let x = unsafe { _mm512_loadu_si512(step.as_ptr().add(16 * at).cast()) };
                above[at] = _mm512_cmpge_epi32_mask(x, positive);
                below[at] = _mm512_cmpge_epu32_mask(x, negative);
                if SUM {
                    let kept = _mm512_maskz_mov_epi32(above[at] | below[at], x);
                    let magnitude = _mm512_and_si512(kept, _mm512_set1_epi32(i32::MAX));
                    sums.add(at, magnitude);
                    largest = _mm512_max_epu32(largest, magnitude);
                }
            }
            let (above, below) = (join(above), join(below));
            coded += u64::from((above | below).count_ones());
            let code = _mm512_maskz_mov_epi8(above, ones);
            let code = _mm512_mask_sub_epi8(code, below, zeros, ones);
            // SAFETY: 64 codes lie there, on a boundary of 64 bytes where it is asked for.
            unsafe {
                if STREAM {
                    _mm512_stream_si512(codes.as_mut_ptr().cast(), code);
                } else {
                    _mm512_storeu_si512(codes.as_mut_ptr().cast(), code);
                }
            }
        }
        if SUM {
            let largest = _mm512_reduce_max_epu32(largest);
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

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn join(quarters: [__mmask16; 4]) -> __mmask64 {
    let [a, b, c, d] = quarters.map(u64::from);
    a | b << 16 | c << 32 | d << 48
}
