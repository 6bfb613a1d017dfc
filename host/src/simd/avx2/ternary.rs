//! Ternary codes by one comparison, 32 values at a time.

use std::arch::x86_64::*;

use tercet_core::number::{ExactSum, bits};
use tercet_core::quant::{Applied, QuantError};
use tercet_core::scalar;

use super::stats::{Sums, add_windows, lanes, load};
use crate::simd::exact::{LANE, Window};
use crate::simd::stores::{Ahead, Stores};

/// As [`scalar::ternary`].
#[target_feature(enable = "avx2,popcnt")]
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
        let (values, codes) = (values.as_flattened(), codes.as_flattened_mut());
        let (values, codes) = (values.as_chunks().0, codes.as_chunks_mut().0);
        applied.merge(&match (sum, streaming) {
            (false, false) => pass::<false, false>(values, threshold, codes, ahead),
            (false, true) => pass::<false, true>(values, threshold, codes, ahead),
            (true, false) => pass::<true, false>(values, threshold, codes, ahead),
            (true, true) => pass::<true, true>(values, threshold, codes, ahead),
        });
    });
    Ok(applied)
}

/// Whole steps; where `STREAM`, codes on a boundary of 32 bytes, and a fence to follow.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn pass<const SUM: bool, const STREAM: bool>(
    values: &[[f32; 32]],
    threshold: u32,
    codes: &mut [[i8; 32]],
    ahead: Ahead,
) -> Applied {
    // Magnitudes have 31 bits, so that signed comparisons do.
    let below = _mm256_set1_epi32(threshold as i32 - 1);
    let magnitudes = _mm256_set1_epi32(i32::MAX);
    let (zeros, ones) = (_mm256_setzero_si256(), _mm256_set1_epi32(1));
    // Packing works in halves: dword 4h + j holds the codes of half h of quarter j; in order it is dword 2j + h.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let mut uncoded = 0;
    let mut coded_sum = ExactSum::ZERO;
    let count = values.len() as u64 * 32;
    for (values, codes) in values.chunks(LANE).zip(codes.chunks_mut(LANE)) {
        let mut sums = Sums::zero();
        let mut largest = zeros;
        for (step, codes) in values.iter().zip(codes) {
            ahead.ask(step.as_ptr(), 0);
            ahead.ask(step.as_ptr().wrapping_add(16), 1);
            let mut quarters = [zeros; 4];
            for (at, values) in step.as_chunks().0.iter().enumerate() {
                let x = load(values);
                let magnitude = _mm256_and_si256(x, magnitudes);
                let coded = _mm256_cmpgt_epi32(magnitude, below);
                let sign = _mm256_or_si256(_mm256_srai_epi32::<31>(x), ones);
                quarters[at] = _mm256_and_si256(coded, sign);
                if SUM {
                    let kept = _mm256_and_si256(coded, magnitude);
                    sums.add(at, kept);
                    largest = _mm256_max_epu32(largest, kept);
                }
            }
            let [a, b, c, d] = quarters;
            let (ab, cd) = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
            let code = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
            let zero = _mm256_movemask_epi8(_mm256_cmpeq_epi8(code, zeros));
            uncoded += u64::from(zero.count_ones());
            // SAFETY: 32 codes lie there, on a boundary of 32 bytes where it is asked for.
            unsafe {
                if STREAM {
                    _mm256_stream_si256(codes.as_mut_ptr().cast(), code);
                } else {
                    _mm256_storeu_si256(codes.as_mut_ptr().cast(), code);
                }
            }
        }
        if SUM {
            let largest = lanes(largest).into_iter().fold(0, u32::max);
            match Window::new(threshold, largest.max(threshold)) {
                Some(window) => window.add(sums.units(window), &mut coded_sum),
                None => add_windows(values.as_flattened(), threshold, largest, &mut coded_sum),
            }
        }
    }
    Applied {
        coded: count - uncoded,
        coded_sum,
        clipped: 0,
    }
}
