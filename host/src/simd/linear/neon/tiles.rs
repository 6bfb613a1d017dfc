//! Tiles in parts of 16 rows of weights by 4 of activations: sixteen vectors of sums stay in registers.

use std::arch::aarch64::*;

use tercet_core::linear::Layout;

use super::Products;
use crate::simd::linear::{self, Group, ROWS, STRIP, Scales, TileSums, Word};

/// As the function of the same name.
pub(in crate::simd) fn unpack(
    layout: Layout,
    bytes: &[u8],
    cols: usize,
    out: &mut [u8],
    stride: usize,
) {
    linear::unpack(layout, bytes, cols, out, stride);
}

/// Packs sixteen rows word by word.
pub(in crate::simd) fn pack(codes: &[u8], panel: &mut [Group], second: bool) {
    let first = if second { 16 } else { 0 };
    for (row, codes) in codes.chunks_exact(codes.len() / 16).enumerate() {
        for (group, &four) in panel.iter_mut().zip(codes.as_chunks::<4>().0) {
            group.0[first + row] = four;
        }
    }
}

/// As the function of the same name.
pub(in crate::simd) fn add(
    sums: &[TileSums<i32>],
    less: &[i32],
    scales: &Scales,
    totals: &mut [TileSums<i64>],
) {
    linear::add(sums, less, scales, totals);
}

/// Adds Σ code · activation, modulo 2³². With `FLIP` codes are 0 to 255: their products are those of code − 128, a
/// signed byte, plus 128·Σx, which is computed by two products with 64. Without it, they are 0 to 127.
///
/// # Safety
/// The set must run here.
#[inline(always)]
pub(in crate::simd) unsafe fn multiply<P: Products, const FLIP: bool>(
    panel: &[Group],
    strip: &[Word],
    sums: &mut [TileSums<i32>],
) {
    let strip = strip.as_chunks::<STRIP>().0;
    for acts in (0..sums.len().min(STRIP)).step_by(4) {
        for rows in (0..ROWS).step_by(16) {
            // SAFETY: the set runs here; four words are sixteen bytes, as are four rows of a group.
            unsafe {
                let flip = vdupq_n_s8(i8::MIN);
                let mut tile = [[vdupq_n_s32(0); 4]; 4];
                let mut total = vdupq_n_s32(0);
                for (group, column) in panel.iter().zip(strip) {
                    let words: *const i8 = column[acts..][..4].as_ptr().cast();
                    let words = vld1q_s8(words);
                    if FLIP {
                        let sixty_four = vdupq_n_s8(64);
                        total = P::add(P::add(total, sixty_four, words), sixty_four, words);
                    }
                    let words = vreinterpretq_u32_s8(words);
                    let words = [
                        vdupq_laneq_u32::<0>(words),
                        vdupq_laneq_u32::<1>(words),
                        vdupq_laneq_u32::<2>(words),
                        vdupq_laneq_u32::<3>(words),
                    ];
                    let codes: *const i8 = group.0[rows..][..16].as_ptr().cast();
                    for four in 0..4 {
                        let mut codes = vld1q_s8(codes.add(16 * four));
                        if FLIP {
                            codes = veorq_s8(codes, flip);
                        }
                        for (tile, words) in tile.iter_mut().zip(words) {
                            let words = vreinterpretq_s8_u32(words);
                            tile[four] = P::add(tile[four], codes, words);
                        }
                    }
                }
                let mut totals = [0; 4];
                vst1q_s32(totals.as_mut_ptr(), total);
                for ((sums, tile), total) in sums[acts..].iter_mut().zip(tile).zip(totals) {
                    let fours = sums[rows..][..16].as_chunks_mut::<4>().0;
                    for (sums, four) in fours.iter_mut().zip(tile) {
                        let four = vaddq_s32(four, vdupq_n_s32(total));
                        vst1q_s32(sums.as_mut_ptr(), vaddq_s32(vld1q_s32(sums.as_ptr()), four));
                    }
                }
            }
        }
    }
}
