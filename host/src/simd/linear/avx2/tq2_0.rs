//! TQ2_0 in place. Bits 2·n and 2·n + 1 of byte 32·h + m of a block are the code plus 1 of value 128·h + 32·n + m, so a
//! vector of activations is multiplied with a field of a half's bytes.
//!
//! A 16-bit lane adds up eight of `vpmaddubsw`'s sums in a block, at most 8·2·3·127 = 6,096.
//!
//! The blocks of a BitNet's matrix have one scale. Such rows are added up as a whole and scaled once: the same integer,
//! since Σ dot · scale = scale · Σ dot. With many rows of activations too, they are multiplied as they are stored: what
//! a row is unpacked to is used for up to five rows of activations.

use std::arch::x86_64::*;

use super::total;
use crate::simd::blocks::codes;
use crate::simd::linear::{Activations, Line, ROWS, Start, TileSums};
use crate::simd::stores::Ahead;
use tercet_core::block::Format;

/// Bytes of a block.
const BLOCK: usize = 66;
/// Values per block, and lines of so many.
const VALUES: usize = 256;
const LINES: usize = VALUES / size_of::<Line>();

/// Stores the activations in order, and −Σx of each block.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.set(x);
    activations
        .start
        .extend(x.as_chunks::<VALUES>().0.iter().map(|x| {
            let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
            Start([-sum; 16])
        }));
}

/// Blocks whose sums fit a 16-bit lane: 5 · 6,096 = 30,480.
const NARROW: usize = 5;

/// Processes row after row, in place.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let row_bytes = x.len / VALUES * BLOCK;
    assert!(bytes.len() == out.len() * row_bytes);
    let lines = x.lines.as_chunks::<LINES>().0;
    // Within 65,536 · 3 · 127, as a row's sums are.
    let less: i32 = x.start.iter().map(|start| start.0[0]).sum();
    // Until a row has several scales.
    let mut have_one = true;
    for (row, out) in bytes.chunks_exact(row_bytes).zip(out) {
        let blocks = row.as_chunks::<BLOCK>().0;
        if have_one {
            let dot = i64::from(whole(blocks, lines) + less);
            if let Some(scale) = one_scale(blocks) {
                *out = dot * scale;
                continue;
            }
            have_one = false;
        }
        *out = 0;
        for ((block, lines), start) in blocks.iter().zip(lines).zip(&x.start) {
            let sum = add(_mm256_setzero_si256(), block, lines);
            let dot = total(_mm256_madd_epi16(sum, _mm256_set1_epi16(1))) + start.0[0];
            *out += i64::from(dot) * codes::fixed(Format::Tq2_0.scale(block));
        }
    }
}

/// Returns the scale of all blocks, if they have the same.
#[inline]
fn one_scale(blocks: &[[u8; BLOCK]]) -> Option<i64> {
    let first = blocks.first()?;
    let scale = |block: &[u8; BLOCK]| [block[BLOCK - 2], block[BLOCK - 1]];
    // Without an early end, which would be a branch for each block.
    let alike = blocks
        .iter()
        .fold(true, |alike, block| alike & (scale(block) == scale(first)));
    alike.then(|| codes::fixed(Format::Tq2_0.scale(first)))
}

/// Returns Σ (code + 1) · x of a row.
#[inline]
#[target_feature(enable = "avx2")]
fn whole(blocks: &[[u8; BLOCK]], lines: &[[Line; LINES]]) -> i32 {
    let mut wide = _mm256_setzero_si256();
    for (blocks, lines) in blocks.chunks(NARROW).zip(lines.chunks(NARROW)) {
        let mut sum = _mm256_setzero_si256();
        for (block, lines) in blocks.iter().zip(lines) {
            Ahead::WEIGHTS.ask(block.as_ptr());
            sum = add(sum, block, lines);
        }
        let four = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
        wide = _mm256_add_epi32(wide, four);
    }
    total(wide)
}

/// Adds Σ (code + 1) · x of a block, in 16-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn add(mut sum: __m256i, block: &[u8; BLOCK], lines: &[Line; LINES]) -> __m256i {
    for half in 0..2 {
        // SAFETY: 32 bytes lie there.
        let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().add(32 * half).cast()) };
        let fields = [
            bytes,
            _mm256_srli_epi16::<2>(bytes),
            _mm256_srli_epi16::<4>(bytes),
            _mm256_srli_epi16::<6>(bytes),
        ];
        for (n, field) in fields.into_iter().enumerate() {
            let codes = _mm256_and_si256(field, _mm256_set1_epi8(3));
            let line = &lines[2 * half + n / 2].0;
            // SAFETY: half a line is 32 activations.
            let x = unsafe { _mm256_load_si256(line.as_ptr().add(n % 2 * 32).cast()) };
            sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, x));
        }
    }
    sum
}

/// Maximum number of rows of activations that a row of weights is unpacked for.
const MOST: usize = 5;

/// Adds Σ (code + 1) · x of up to [`ROWS`] rows with each row of activations, which has so many lines.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn multiply(
    bytes: &[u8],
    of_row: usize,
    x: &[Line],
    mut sums: &mut [TileSums<i32>],
) {
    let rows = bytes.as_chunks::<BLOCK>().0;
    let blocks = of_row / LINES;
    assert!(blocks > 0 && of_row.is_multiple_of(LINES) && x.len() == sums.len() * of_row);
    assert!(rows.len() <= ROWS * blocks);
    let mut x = x.as_chunks::<LINES>().0;
    while !sums.is_empty() {
        let acts = match sums.len() {
            MOST => MOST,
            left => left.min(MOST - 1),
        };
        let (now, after) = sums.split_at_mut(acts);
        let (own, rest) = x.split_at(acts * blocks);
        match acts {
            1 => panel::<1>(rows, own, now),
            2 => panel::<2>(rows, own, now),
            3 => panel::<3>(rows, own, now),
            4 => panel::<4>(rows, own, now),
            _ => panel::<MOST>(rows, own, now),
        }
        (sums, x) = (after, rest);
    }
}

/// [`multiply`] for `ACTS` rows of activations.
#[inline]
#[target_feature(enable = "avx2")]
fn panel<const ACTS: usize>(rows: &[[u8; BLOCK]], x: &[[Line; LINES]], sums: &mut [TileSums<i32>]) {
    for (row, weights) in rows.chunks_exact(x.len() / ACTS).enumerate() {
        let found = row_sums::<ACTS>(weights, x);
        for (sums, found) in sums.iter_mut().zip(found) {
            sums[row] += found;
        }
    }
}

/// Returns Σ (code + 1) · x of a row of weights with each of `ACTS` rows of activations.
#[inline]
#[target_feature(enable = "avx2")]
fn row_sums<const ACTS: usize>(weights: &[[u8; BLOCK]], x: &[[Line; LINES]]) -> [i32; ACTS] {
    let blocks = weights.len();
    assert!(x.len() == ACTS * blocks);
    let mut wide = [_mm256_setzero_si256(); ACTS];
    for (at, five) in weights.chunks(NARROW).enumerate() {
        let mut narrow = [_mm256_setzero_si256(); ACTS];
        for (block, weights) in (NARROW * at..).zip(five) {
            Ahead::WEIGHTS.ask(weights.as_ptr());
            for half in 0..2 {
                // SAFETY: 32 bytes lie there.
                let mut bytes =
                    unsafe { _mm256_loadu_si256(weights.as_ptr().add(32 * half).cast()) };
                for n in 0..4 {
                    let codes = _mm256_and_si256(bytes, _mm256_set1_epi8(3));
                    // What comes from another byte gets no lower than above a code.
                    bytes = _mm256_srli_epi16::<2>(bytes);
                    for (act, narrow) in narrow.iter_mut().enumerate() {
                        // SAFETY: each row of activations has so many blocks, and 32 values lie there.
                        let x = unsafe {
                            let x = x.as_ptr().add(act * blocks + block).cast::<i8>();
                            _mm256_load_si256(x.add(128 * half + 32 * n).cast())
                        };
                        *narrow = _mm256_add_epi16(*narrow, _mm256_maddubs_epi16(codes, x));
                    }
                }
            }
        }
        for (wide, narrow) in wide.iter_mut().zip(narrow) {
            let four = _mm256_madd_epi16(narrow, _mm256_set1_epi16(1));
            *wide = _mm256_add_epi32(*wide, four);
        }
    }
    let mut sums = [0; ACTS];
    for (sum, wide) in sums.iter_mut().zip(wide) {
        *sum = total(wide);
    }
    sums
}
