//! Rows of GGUF blocks: sixteen blocks at a time, in two rows in turns, which come faster from memory than one, and share
//! the activations that are loaded.
//!
//! A format computes the dot products of four blocks without their offset, folded or not; sixteen of them are one
//! vector, which is multiplied with the sixteen scales. Activations are a plane of 8 bits, or two planes of 16-bit ones:
//! a block is unpacked once for both, and their sums are put together before they are scaled.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::sums::{Floats, Scaled, Total};
use super::{ask, ask_far};
use crate::simd::blocks::codes;
use crate::simd::linear::{Activations, HalfRows, Line, LineRows, Rows, Start, Vector};

/// How the blocks of a format are multiplied.
///
/// Only functions that are compiled for the set use these.
pub(super) trait Blocks: Sized {
    /// The format.
    const FORMAT: Format;
    /// Lines of activations for four blocks.
    const LINES: usize;
    /// Distance from the block of a lane to that of the next: 1, or 4 if lane 4·i + r is block 4·r + i of sixteen.
    const STEP: usize;

    /// Orders the activations of four blocks.
    unsafe fn prepare(x: &[i8], lines: &mut [Line]);

    /// Returns Σ code · x of four blocks in two rows, for each plane of activations, spread over lanes.
    ///
    /// # Safety
    /// There must be the bytes of four blocks at either address, and [`Self::LINES`] lines of each plane.
    unsafe fn four<const P: usize>(
        blocks: [*const u8; 2],
        lines: [*const Line; P],
    ) -> [[__m512i; P]; 2];

    /// Combines four of those into one, with a lane per block.
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i;

    /// Returns the scales of sixteen blocks, and their minima if they have them, by lanes.
    ///
    /// # Safety
    /// There must be sixteen blocks.
    #[inline(always)]
    unsafe fn scales(blocks: *const u8) -> [__m256i; 2] {
        // SAFETY: as the caller promises.
        unsafe { scales::<Self>(blocks, SIXTEEN) }
    }
}

/// Blocks that are multiplied before their scales are.
const SIXTEEN: usize = 16;

/// Stores lines for whole sixteens of blocks, padded with zeros, plane after plane; and by lanes offset · Σx of each
/// block, or Σx if blocks have minima. Two planes are the high and the low one of 16-bit activations.
#[inline(always)]
fn prepare<B: Blocks, const P: usize>(planes: [&[i8]; P], activations: &mut Activations) {
    let len = B::FORMAT.len();
    let cols = planes[0].len();
    let blocks = cols / len;
    let sixteens = blocks.div_ceil(SIXTEEN);
    let of_plane = sixteens * 4 * B::LINES;
    activations.len = cols;
    activations.lines = vec![Line([0; 64]); P * of_plane];
    activations.start = vec![Start([0; 16]); sixteens];
    let worth = match B::FORMAT.min_offset() {
        Some(_) => 1,
        None => codes::offset_of(B::FORMAT),
    };
    for (x, lines) in planes
        .into_iter()
        .zip(activations.lines.chunks_exact_mut(of_plane.max(1)))
    {
        for (x, lines) in x.chunks(4 * len).zip(lines.chunks_exact_mut(B::LINES)) {
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
            // The sum of the high plane is there when that of the low one is added.
            let start = &mut activations.start[at].0[lane];
            *start = 255 * *start + worth * sum;
        }
    }
}

/// Maximum bytes of four blocks.
const FOUR_BYTES: usize = 4 * 66;

/// Computes the sums of rows that are stored one after another.
#[inline(always)]
fn rows<B: Blocks, T: Total<P>, const P: usize>(bytes: &[u8], x: &Activations, out: &mut [T::Sum]) {
    let blocks = x.len / B::FORMAT.len();
    let row_bytes = blocks * B::FORMAT.bytes();
    let sixteens = blocks.div_ceil(SIXTEEN);
    assert!(bytes.len() == out.len() * row_bytes);
    assert!(x.lines.len() == P * sixteens * 4 * B::LINES && x.start.len() == sixteens);
    for (number, out) in out.chunks_mut(2).enumerate() {
        let first = 2 * number * row_bytes;
        // The last row of an odd number is paired with itself.
        let second = first + (out.len() - 1) * row_bytes;
        let rows = [&bytes[first..], &bytes[second..]];
        // SAFETY: the caller has the set.
        let mut totals = unsafe { [T::none(), T::none()] };
        for at in 0..blocks / SIXTEEN {
            // SAFETY: the rows have sixteen blocks there, and the activations as many.
            unsafe { sixteen::<B, T, P, 4>(rows, x, at, &mut totals, SIXTEEN) };
        }
        let (rest, at) = (blocks % SIXTEEN, blocks / SIXTEEN);
        // SAFETY: the rows have so many blocks, and the activations sixteen.
        unsafe {
            match rest {
                0 => {}
                1..=4 => sixteen::<B, T, P, 1>(rows, x, at, &mut totals, rest),
                _ => sixteen::<B, T, P, ANY>(rows, x, at, &mut totals, rest),
            }
        }
        for (out, total) in out.iter_mut().zip(totals) {
            // SAFETY: the caller has the set.
            *out = unsafe { total.sum() };
        }
    }
}

/// A number of fours that is not known when it is compiled.
const ANY: usize = 0;

/// Adds the products of `count` blocks, in `FOURS` fours: sixteen without a branch, four, or [`ANY`] in a loop, with which
/// the code for each number of them would be twice this.
///
/// # Safety
/// The rows must have those blocks, and the activations sixteen, of the number `at`; the set must run here.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "fours count through several tables"
)]
unsafe fn sixteen<B: Blocks, T: Total<P>, const P: usize, const FOURS: usize>(
    rows: [&[u8]; 2],
    x: &Activations,
    at: usize,
    totals: &mut [T; 2],
    count: usize,
) {
    let block = B::FORMAT.bytes();
    let has_minima = const { B::FORMAT.min_offset().is_some() };
    let first = at * SIXTEEN * block;
    // SAFETY: as the caller promises.
    unsafe {
        let mut lines = [x.lines.as_ptr(); P];
        for (plane, lines) in lines.iter_mut().enumerate() {
            *lines = lines.add((plane * x.start.len() + at) * 4 * B::LINES);
        }
        let mut fours = [[[_mm512_setzero_si512(); 4]; P]; 2];
        for four in 0..if FOURS == ANY {
            count.div_ceil(4)
        } else {
            FOURS
        } {
            let from = first + four * 4 * block;
            // Both rows' blocks are before those of the next two, of which the second row's come first here.
            match B::FORMAT {
                Format::Q8_0 => ask_far(rows[0].as_ptr().wrapping_add(2 * from), 8 * block),
                _ => ask(rows[1].as_ptr().wrapping_add(2 * from), 8 * block),
            }
            let mut blocks = [rows[0].as_ptr().add(from), rows[1].as_ptr().add(from)];
            // Copied where four blocks do not all lie in the matrix. Those after a row's last one count for nothing.
            let mut copies = [[0; FOUR_BYTES]; 2];
            if FOURS != 4 {
                for ((copy, block_at), row) in copies.iter_mut().zip(&mut blocks).zip(rows) {
                    let left = &row[from..];
                    if left.len() < 4 * block {
                        copy[..left.len()].copy_from_slice(left);
                        *block_at = copy.as_ptr();
                    }
                }
            }
            let mut own = lines;
            for lines in &mut own {
                *lines = lines.add(four * B::LINES);
            }
            let found = B::four(blocks, own);
            for row in 0..2 {
                for plane in 0..P {
                    fours[row][plane][four] = found[row][plane];
                }
            }
        }
        let start = _mm512_load_si512(x.start.as_ptr().add(at).cast());
        for row in 0..2 {
            let mut planes = [_mm512_setzero_si512(); P];
            for plane in 0..P {
                planes[plane] = B::sixteen(fours[row][plane]);
            }
            let blocks = rows[row].as_ptr().add(first);
            let [scales, minima] = if FOURS == 4 {
                B::scales(blocks)
            } else {
                scales::<B>(blocks, count)
            };
            let dots = T::together(planes);
            if has_minima {
                totals[row].add(dots, scales);
                totals[row].add(start, minima);
            } else {
                totals[row].add(_mm512_sub_epi32(dots, start), scales);
            }
        }
    }
}

/// Returns the scales of sixteen blocks, and their minima if they have them, by lanes, 0 if there is no block. They are
/// combined four at a time in general registers, because the vector ports are already busy.
///
/// # Safety
/// There must be `count` blocks; the set must run here.
#[inline(always)]
pub(super) unsafe fn scales<B: Blocks>(blocks: *const u8, count: usize) -> [__m256i; 2] {
    // SAFETY: as the caller promises.
    unsafe {
        let scales = halves::<B>(blocks.wrapping_add(B::FORMAT.scale_offset()), count);
        let minima = match const { B::FORMAT.min_offset() } {
            Some(at) => halves::<B>(blocks.wrapping_add(at), count),
            None => scales,
        };
        [scales, minima]
    }
}

/// Returns a number of each block, by lanes.
///
/// # Safety
/// There must be `count` blocks, given the address of the first one's number; the set must run here.
#[inline(always)]
unsafe fn halves<B: Blocks>(numbers: *const u8, count: usize) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe {
        let [a, b, c, d] = [
            four_halves::<B>(numbers, count, 0),
            four_halves::<B>(numbers, count, 1),
            four_halves::<B>(numbers, count, 2),
            four_halves::<B>(numbers, count, 3),
        ];
        _mm256_setr_epi64x(a, b, c, d)
    }
}

/// Returns the numbers of four lanes.
///
/// # Safety
/// There must be `count` blocks, given the address of the first one's number.
#[inline(always)]
unsafe fn four_halves<B: Blocks>(numbers: *const u8, count: usize, four: usize) -> i64 {
    let first = if B::STEP == 1 { 4 * four } else { four };
    let mut halves = 0;
    for lane in (0..4).rev() {
        let block = first + lane * B::STEP;
        halves <<= 16;
        if block < count {
            // SAFETY: as the caller promises.
            let half: u16 = unsafe {
                let at = numbers.add(block * B::FORMAT.bytes());
                at.cast::<u16>().read_unaligned()
            };
            halves |= i64::from(half);
        }
    }
    halves
}

/// The kernel of a format for activations of 8 bits.
pub(super) fn vector<B: Blocks>() -> Vector {
    Vector {
        prepare: bytes::<B>,
        rows: Rows::Wide(wide::<B>),
    }
}

/// The kernel of a format for activations of 16 bits.
pub(super) fn half_rows<B: Blocks>() -> HalfRows {
    HalfRows::Lines(LineRows {
        prepare: planes::<B>,
        rows: whole::<B>,
    })
}

/// Stores activations in the order of the blocks' bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn bytes<B: Blocks>(x: &[i8], activations: &mut Activations) {
    prepare::<B, 1>([x], activations);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn planes<B: Blocks>(x: [&[i8]; 2], activations: &mut Activations) {
    prepare::<B, 2>(x, activations);
}

/// Processes rows in place.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn wide<B: Blocks>(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    rows::<B, Scaled, 1>(bytes, x, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn whole<B: Blocks>(bytes: &[u8], x: &Activations, out: &mut [f64]) {
    rows::<B, Floats, 2>(bytes, x, out);
}
