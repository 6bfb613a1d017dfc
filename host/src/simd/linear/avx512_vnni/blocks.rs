//! Rows of GGUF blocks: sixteen blocks at a time, in two rows, so that activations are loaded once for both.
//!
//! A format computes the dot products of four blocks without their offset, folded or not; sixteen of them are one
//! vector, which is multiplied with the sixteen scales.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::prefetch;
use super::sums::Scaled;
use crate::simd::blocks::codes;
use crate::simd::linear::{Activations, Line, Start};

/// How the blocks of a format are multiplied.
///
/// Only [`rows`] and [`prepare`], which have the set, use these functions.
pub(super) trait Blocks: Sized {
    /// The format.
    const FORMAT: Format;
    /// Lines of activations for four blocks.
    const LINES: usize;
    /// Distance from the block of a lane to that of the next: 1, or 4 if lane 4·i + r is block 4·r + i of sixteen.
    const STEP: usize;

    /// Orders the activations of four blocks.
    unsafe fn prepare(x: &[i8], lines: &mut [Line]);

    /// Returns Σ code · x of four blocks in two rows, spread over lanes.
    ///
    /// # Safety
    /// There must be the bytes of four blocks at either address, and [`Self::LINES`] lines.
    unsafe fn four(blocks: [*const u8; 2], lines: *const Line) -> [__m512i; 2];

    /// Combines four of those into one, with a lane per block.
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i;

    /// Returns the scales of sixteen blocks, by lanes.
    ///
    /// # Safety
    /// There must be sixteen blocks.
    #[inline(always)]
    unsafe fn scales(blocks: *const u8) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe { scales::<Self>(blocks, SIXTEEN) }
    }
}

/// Blocks that are multiplied before their scales are.
const SIXTEEN: usize = 16;

/// Stores lines for whole sixteens of blocks, padded with zeros; and offset · Σx of each block, by lanes.
#[inline(always)]
pub(super) fn prepare<B: Blocks>(x: &[i8], activations: &mut Activations) {
    let len = B::FORMAT.len();
    let blocks = x.len() / len;
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); blocks.div_ceil(SIXTEEN) * 4 * B::LINES];
    activations.start = vec![Start([0; 16]); blocks.div_ceil(SIXTEEN)];
    let lines = activations.lines.chunks_exact_mut(B::LINES);
    for (x, lines) in x.chunks(4 * len).zip(lines) {
        let mut four;
        let x = if x.len() == 4 * len {
            x
        } else {
            four = [0; 4 * Format::MAX_LEN];
            four[..x.len()].copy_from_slice(x);
            &four[..4 * len]
        };
        // Called in this place only, because all of it is compiled where it is called.
        // SAFETY: the caller has the set.
        unsafe { B::prepare(x, lines) };
    }
    for (block, x) in x.chunks_exact(len).enumerate() {
        let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
        let (at, block) = (block / SIXTEEN, block % SIXTEEN);
        let lane = if B::STEP == 1 {
            block
        } else {
            block % 4 * 4 + block / 4
        };
        activations.start[at].0[lane] = codes::offset_of(B::FORMAT) * sum;
    }
}

/// Maximum bytes of four blocks.
const FOUR_BYTES: usize = 4 * 66;

/// Computes the sums of rows that are stored one after another.
#[inline(always)]
pub(super) fn rows<B: Blocks>(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let block = B::FORMAT.bytes();
    let blocks = x.len / B::FORMAT.len();
    let row_bytes = blocks * block;
    let sixteens = blocks.div_ceil(SIXTEEN);
    assert!(bytes.len() == out.len() * row_bytes);
    assert!(x.lines.len() == sixteens * 4 * B::LINES && x.start.len() == sixteens);
    let ahead = (2 * row_bytes).max(AHEAD);
    for (pair, out) in bytes.chunks(2 * row_bytes).zip(out.chunks_mut(2)) {
        // The last row of an odd number is paired with itself.
        let rows = [&pair[..row_bytes], &pair[pair.len() - row_bytes..]];
        // SAFETY: the caller has the set.
        let mut sums = unsafe { [Scaled::new(), Scaled::new()] };
        for at in 0..blocks / SIXTEEN {
            let first = at * SIXTEEN * block;
            // The two rows of the next pair are after these two, in order.
            let next = pair.as_ptr().wrapping_add(ahead + 2 * first);
            // SAFETY: the rows have sixteen blocks there, and the activations as many.
            unsafe { sixteen::<B, SIXTEEN>(rows, x, at, &mut sums, SIXTEEN, next) };
        }
        let rest = blocks % SIXTEEN;
        let next = pair
            .as_ptr()
            .wrapping_add(ahead + 2 * (blocks - rest) * block);
        // SAFETY: the rows have so many blocks, and the activations sixteen.
        unsafe {
            match rest / 4 {
                _ if rest == 0 => {}
                0 => sixteen::<B, 0>(rows, x, sixteens - 1, &mut sums, rest, next),
                1 => sixteen::<B, 4>(rows, x, sixteens - 1, &mut sums, rest, next),
                2 => sixteen::<B, 8>(rows, x, sixteens - 1, &mut sums, rest, next),
                _ => sixteen::<B, 12>(rows, x, sixteens - 1, &mut sums, rest, next),
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            // SAFETY: the caller has the set.
            *out = unsafe { sum.total() };
        }
    }
}

/// Minimum prefetch distance of a row in bytes.
const AHEAD: usize = 4096;

/// Adds the products of `count` blocks, the first `WHOLE` of them in whole fours.
///
/// # Safety
/// The rows must have those blocks, from the sixteen at `at` on, and the activations sixteen; the set must run here.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "fours count through several tables"
)]
unsafe fn sixteen<B: Blocks, const WHOLE: usize>(
    rows: [&[u8]; 2],
    x: &Activations,
    at: usize,
    sums: &mut [Scaled; 2],
    count: usize,
    next: *const u8,
) {
    let block = B::FORMAT.bytes();
    // SAFETY: as the caller promises.
    unsafe {
        let lines = x.lines.as_ptr().add(at * 4 * B::LINES);
        let first = at * SIXTEEN * block;
        let rows = [rows[0].as_ptr().add(first), rows[1].as_ptr().add(first)];
        let mut fours = [[_mm512_setzero_si512(); 4]; 2];
        for four in 0..WHOLE / 4 {
            for line in 0..(8 * block).div_ceil(64) {
                prefetch(next.wrapping_add(8 * four * block + 64 * line));
            }
            let at = four * 4 * block;
            let blocks = [rows[0].add(at), rows[1].add(at)];
            let [a, b] = B::four(blocks, lines.add(four * B::LINES));
            fours[0][four] = a;
            fours[1][four] = b;
        }
        if WHOLE < SIXTEEN && count > WHOLE {
            // Copied, so that four blocks lie there.
            let four = WHOLE / 4;
            let mut copies = [[0; FOUR_BYTES]; 2];
            for (copy, row) in copies.iter_mut().zip(rows) {
                let left = (count - WHOLE) * block;
                let from = row.add(WHOLE * block);
                copy[..left].copy_from_slice(std::slice::from_raw_parts(from, left));
            }
            let blocks = [copies[0].as_ptr(), copies[1].as_ptr()];
            let [a, b] = B::four(blocks, lines.add(four * B::LINES));
            fours[0][four] = a;
            fours[1][four] = b;
        }
        let less = _mm512_load_si512(x.start.as_ptr().add(at).cast());
        for row in 0..2 {
            let dots = _mm512_sub_epi32(B::sixteen(fours[row]), less);
            let scales = match WHOLE {
                SIXTEEN => B::scales(rows[row]),
                _ => scales::<B>(rows[row], count),
            };
            sums[row].add(dots, scales);
        }
    }
}

/// Returns the scales of sixteen blocks by lanes, 0 if there is no block. They are combined four at a time in general
/// registers, because the vector ports are already busy.
///
/// # Safety
/// There must be `count` blocks; the set must run here.
#[inline(always)]
pub(super) unsafe fn scales<B: Blocks>(blocks: *const u8, count: usize) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe {
        let [a, b, c, d] = [
            four_scales::<B>(blocks, count, 0),
            four_scales::<B>(blocks, count, 1),
            four_scales::<B>(blocks, count, 2),
            four_scales::<B>(blocks, count, 3),
        ];
        _mm256_setr_epi64x(a, b, c, d)
    }
}

/// Returns the scales of four lanes.
///
/// # Safety
/// There must be `count` blocks.
#[inline(always)]
unsafe fn four_scales<B: Blocks>(blocks: *const u8, count: usize, four: usize) -> i64 {
    let first = if B::STEP == 1 { 4 * four } else { four };
    let mut scales = 0;
    for lane in (0..4).rev() {
        let block = first + lane * B::STEP;
        scales <<= 16;
        if block < count {
            let at = block * B::FORMAT.bytes() + B::FORMAT.scale_offset();
            // SAFETY: as the caller promises.
            let scale: u16 = unsafe { blocks.add(at).cast::<u16>().read_unaligned() };
            scales |= i64::from(scale);
        }
    }
    scales
}

/// Defines the kernels of a format, compiled for the set.
macro_rules! kernels {
    ($blocks:ty) => {
        /// Stores activations in the order of the blocks' bytes; see `blocks`.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
        pub(in crate::simd) fn prepare(
            x: &[i8],
            activations: &mut crate::simd::linear::Activations,
        ) {
            crate::simd::avx512_vnni::linear::blocks::prepare::<$blocks>(x, activations);
        }

        /// Processes rows in place; see `blocks`.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
        pub(in crate::simd) fn rows(
            bytes: &[u8],
            x: &crate::simd::linear::Activations,
            out: &mut [i64],
        ) {
            crate::simd::avx512_vnni::linear::blocks::rows::<$blocks>(bytes, x, out);
        }
    };
}
pub(super) use kernels;
