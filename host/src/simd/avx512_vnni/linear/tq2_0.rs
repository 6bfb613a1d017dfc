//! TQ2_0 as it lies. A block's 64 bytes of codes are one vector: bits 2·n and 2·n + 1 of byte 32·h + m are the code plus 1 of value
//! 128·h + 32·n + m, so four vectors of activations meet the four fields of each byte.
//!
//! The fields are not shifted down one by one: fields 1 and 3 are taken where they lie in a nibble, 4 times too large, first, and their
//! sum, with −4·Σx beneath it, moved down before fields 0 and 2 are added. The lanes then are the block's sum, exactly:
//! 16 products of at most 3·127, or 4 times that.

use std::arch::x86_64::*;

use tercet_core::linear::MAX_COLS;

use super::load;
use super::sums::{Scaled, fold_four, fold_fours};
use crate::simd::linear::{Activations, Line, Start};

/// Bytes of a block.
const BLOCK: usize = 66;
/// Values of one.
const VALUES: usize = 256;

/// Four lines a block, by the fields of a byte, and −4·Σx of the values that meet in a lane.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    for block in x.as_chunks::<VALUES>().0 {
        let (low, high) = block.split_at(VALUES / 2);
        let mut sum = _mm512_setzero_si512();
        for (low, high) in low.chunks_exact(32).zip(high.chunks_exact(32)) {
            let mut line = [0; 64];
            line[..32].copy_from_slice(low);
            line[32..].copy_from_slice(high);
            let line = Line(line);
            sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(4), load(&line));
            activations.lines.push(line);
        }
        let mut start = [0; 16];
        let minus = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
        // SAFETY: sixteen lanes fit there.
        unsafe { _mm512_storeu_si512(start.as_mut_ptr().cast(), minus) };
        activations.start.push(Start(start));
    }
}

/// The most fours of blocks in a row.
const FOURS: usize = (MAX_COLS / VALUES).div_ceil(4);

/// Two rows at a time, so that activations are loaded once for both: first the dot products of all blocks, then their scales.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let blocks = x.start.len();
    let row_bytes = blocks * BLOCK;
    assert!(bytes.len() == out.len() * row_bytes && x.lines.len() == 4 * blocks);
    assert!(blocks <= 4 * FOURS);
    let mut folded = [[_mm512_setzero_si512(); FOURS]; 2];
    for (rows, out) in bytes.chunks(2 * row_bytes).zip(out.chunks_mut(2)) {
        // The last of an odd number keeps itself company.
        let rows = [&rows[..row_bytes], &rows[rows.len() - row_bytes..]];
        // SAFETY: the rows have so many blocks, and the activations as many.
        unsafe {
            for first in (0..blocks / 4).map(|four| 4 * four) {
                four::<4>(rows, x, first, &mut folded);
            }
            match blocks % 4 {
                1 => four::<1>(rows, x, blocks - 1, &mut folded),
                2 => four::<2>(rows, x, blocks - 2, &mut folded),
                3 => four::<3>(rows, x, blocks - 3, &mut folded),
                _ => {}
            }
        }
        for ((row, folded), out) in rows.into_iter().zip(&folded).zip(out) {
            *out = scaled(row, &folded[..blocks.div_ceil(4)]);
        }
    }
}

/// Stores the sums of `N` blocks, at most four, folded.
///
/// # Safety
/// The rows and the activations must have those blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[expect(
    clippy::needless_range_loop,
    reason = "blocks count through several tables"
)]
unsafe fn four<const N: usize>(
    rows: [&[u8]; 2],
    x: &Activations,
    first: usize,
    folded: &mut [[__m512i; FOURS]; 2],
) {
    let mut dots = [[_mm512_setzero_si512(); 4]; 2];
    for block in 0..N {
        let at = first + block;
        // SAFETY: as the caller promises.
        let lines: &[Line; 4] = unsafe { &*x.lines.as_ptr().add(4 * at).cast() };
        let lines = [
            load(&lines[0]),
            load(&lines[1]),
            load(&lines[2]),
            load(&lines[3]),
        ];
        // SAFETY: as the caller promises.
        let start = unsafe { _mm512_load_si512(x.start.as_ptr().add(at).cast()) };
        for row in 0..2 {
            // SAFETY: as the caller promises; a block has 66 bytes.
            let codes = unsafe {
                let codes = rows[row].as_ptr().add(at * BLOCK);
                _mm512_loadu_si512(codes.cast())
            };
            dots[row][block] = dot(codes, lines, start);
        }
    }
    for row in 0..2 {
        folded[row][first / 4] = fold_four(dots[row]);
    }
}

/// The sum of a row's blocks, with their scales.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn scaled(row: &[u8], folded: &[__m512i]) -> i64 {
    let mut sum = Scaled::new();
    let (sixteens, rest) = row.as_chunks::<{ 16 * BLOCK }>();
    let (fours, _) = folded.as_chunks::<4>();
    for (blocks, &folded) in sixteens.iter().zip(fours) {
        sum.add(fold_fours(folded), scales(blocks));
    }
    if !rest.is_empty() {
        // Copied, so that sixteen blocks lie there.
        let mut blocks = [0; 16 * BLOCK];
        blocks[..rest.len()].copy_from_slice(rest);
        let left = &folded[4 * sixteens.len()..];
        let mut folded = [_mm512_setzero_si512(); 4];
        folded[..left.len()].copy_from_slice(left);
        sum.add(fold_fours(folded), scales(&blocks));
    }
    sum.total()
}

/// The scales of sixteen blocks: put together four at a time in whole registers, since the vectors' ports have enough to do.
#[inline]
#[target_feature(enable = "avx512f")]
fn scales(blocks: &[u8; 16 * BLOCK]) -> __m256i {
    let scale = |block: usize| {
        let at = block * BLOCK + 64;
        u64::from(u16::from_le_bytes([blocks[at], blocks[at + 1]]))
    };
    let four = |first: usize| {
        let low = scale(first) | scale(first + 1) << 16;
        let high = scale(first + 2) | scale(first + 3) << 16;
        (low | high << 32) as i64
    };
    _mm256_setr_epi64x(four(0), four(4), four(8), four(12))
}

/// Σ (c − 1)·x of a block, by lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dot(codes: __m512i, x: [__m512i; 4], start: __m512i) -> __m512i {
    let (low, high) = (_mm512_set1_epi8(0b11), _mm512_set1_epi8(0b1100));
    let upper = _mm512_srli_epi16::<4>(codes);
    let sum = _mm512_dpbusd_epi32(start, _mm512_and_si512(codes, high), x[1]);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(upper, high), x[3]);
    let sum = _mm512_srai_epi32::<2>(sum);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(codes, low), x[0]);
    _mm512_dpbusd_epi32(sum, _mm512_and_si512(upper, low), x[2])
}
