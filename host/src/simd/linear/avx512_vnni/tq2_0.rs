//! TQ2_0 in place. A block's 64 bytes of codes are one vector: bits 2·n and 2·n + 1 of byte 32·h + m are the code of
//! value 128·h + 32·n + m, so four vectors of activations are multiplied with the four fields of each byte.
//!
//! The fields are not shifted down one by one. Fields 1 and 3 are used first in their place in a nibble, 4 times too
//! large, and their sum is shifted down before fields 0 and 2 are added.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::Blocks;
use super::one_scale::{OneScale, scale};
use super::sums::{fold_four, fold_fours};
use super::{ask, ask_far, load_lines};
use crate::simd::linear::{Line, ROWS, TileSums};

pub(super) struct Tq2_0;

/// Bytes of a block.
const BLOCK: usize = 66;
/// Lines of values per block.
const LINES: usize = 4;
/// Bytes of its codes, which the scale follows.
const CODE_BYTES: usize = 64;

impl Blocks for Tq2_0 {
    const FORMAT: Format = Format::Tq2_0;
    const LINES: usize = 16;
    const STEP: usize = 1;

    #[inline(always)]
    unsafe fn prepare(x: &[i8], lines: &mut [Line]) {
        for (x, lines) in x.chunks_exact(256).zip(lines.chunks_exact_mut(4)) {
            for (field, line) in lines.iter_mut().enumerate() {
                line.0[..32].copy_from_slice(&x[32 * field..][..32]);
                line.0[32..].copy_from_slice(&x[128 + 32 * field..][..32]);
            }
        }
    }

    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "blocks count through several tables"
    )]
    unsafe fn four<const P: usize>(
        blocks: [*const u8; 2],
        lines: [*const Line; P],
    ) -> [[__m512i; P]; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            let mut dots = [[[_mm512_setzero_si512(); 4]; P]; 2];
            for block in 0..4 {
                for row in 0..2 {
                    let codes = _mm512_loadu_si512(blocks[row].add(block * BLOCK).cast());
                    for plane in 0..P {
                        let x = load_lines::<4>(lines[plane].add(4 * block));
                        dots[row][plane][block] = dot(codes, x);
                    }
                }
            }
            let mut found = [[_mm512_setzero_si512(); P]; 2];
            for row in 0..2 {
                for plane in 0..P {
                    found[row][plane] = fold_four(dots[row][plane]);
                }
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i {
        // SAFETY: the caller has the set.
        unsafe { fold_fours(fours) }
    }
}

impl OneScale for Tq2_0 {
    /// Fields stay where they are in their bytes: field n is 4ⁿ times too large until the end. A lane is at most 256 · 4
    /// · 192 · 127.
    #[inline(always)]
    unsafe fn whole(rows: [&[u8]; 2], lines: &[Line]) -> ([i32; 2], [u16; 2], bool) {
        let fields = [0b11, 0b1100, 0b11_0000, 0b1100_0000_u8];
        let first = [scale(&rows[0][CODE_BYTES..]), scale(&rows[1][CODE_BYTES..])];
        // SAFETY: as the caller promises; blocks and their lines lie there.
        unsafe {
            let mut sums = [[_mm512_setzero_si512(); 4]; 2];
            let mut other = 0;
            for (at, lines) in (0..rows[0].len())
                .step_by(BLOCK)
                .zip(lines.as_chunks::<4>().0)
            {
                // Both rows' blocks are before those of the next two.
                ask_far(rows[0].as_ptr().wrapping_add(2 * at), 2 * BLOCK);
                let x = load_lines::<4>(lines.as_ptr());
                for ((sums, row), first) in sums.iter_mut().zip(rows).zip(first) {
                    let block = row.as_ptr().add(at);
                    other |= block.add(CODE_BYTES).cast::<u16>().read_unaligned() ^ first;
                    let codes = _mm512_loadu_si512(block.cast());
                    for ((sum, field), x) in sums.iter_mut().zip(fields).zip(x) {
                        let field = _mm512_and_si512(codes, _mm512_set1_epi8(field as i8));
                        *sum = _mm512_dpbusd_epi32(*sum, field, x);
                    }
                }
            }
            let mut dots = [0; 2];
            for (dot, [a, b, c, d]) in dots.iter_mut().zip(sums) {
                let (b, c, d) = (
                    _mm512_srai_epi32::<2>(b),
                    _mm512_srai_epi32::<4>(c),
                    _mm512_srai_epi32::<6>(d),
                );
                let all = _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d));
                *dot = _mm512_reduce_add_epi32(all);
            }
            (dots, first, other == 0)
        }
    }
}

/// Returns Σ code · x of a block, by lanes: 16 products of at most 3·127, 4 times that before they are shifted down.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn dot(codes: __m512i, x: [__m512i; 4]) -> __m512i {
    let (low, high) = (_mm512_set1_epi8(0b11), _mm512_set1_epi8(0b1100));
    let upper = _mm512_srli_epi16::<4>(codes);
    let sum = _mm512_setzero_si512();
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(codes, high), x[1]);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(upper, high), x[3]);
    let sum = _mm512_srai_epi32::<2>(sum);
    let sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(codes, low), x[0]);
    _mm512_dpbusd_epi32(sum, _mm512_and_si512(upper, low), x[2])
}

/// Rows of activations that two rows of weights are unpacked for.
const ACTS: usize = 8;
/// Maximum blocks per piece of a row, whose activations stay in the first cache: 24 KiB of eight rows.
const PIECE: usize = 12;

/// Adds Σ (code + 1) · x of up to [`ROWS`] rows with each row of activations, which has so many lines.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn multiply(
    bytes: &[u8],
    of_row: usize,
    x: &[Line],
    sums: &mut [TileSums<i32>],
) {
    let rows = bytes.as_chunks::<BLOCK>().0;
    let blocks = of_row / LINES;
    assert!(blocks > 0 && of_row.is_multiple_of(LINES) && x.len() == sums.len() * of_row);
    assert!(rows.len() <= ROWS * blocks && rows.len().is_multiple_of(blocks));
    let x = x.as_chunks::<LINES>().0;
    // Eight rows that are 4 KiB apart would need all places of the first cache for them.
    let most = if of_row.is_multiple_of(4096 / 64) {
        ACTS / 2
    } else {
        ACTS
    };
    let mut done = 0;
    while done < sums.len() {
        let acts = match sums.len() - done {
            left if left >= most => most,
            left if left >= ACTS / 2 => ACTS / 2,
            _ => 1,
        };
        let own = &x[done * blocks..][..acts * blocks];
        let now = &mut sums[done..][..acts];
        match acts {
            1 => panel::<1>(rows, blocks, own, now),
            ACTS => panel::<ACTS>(rows, blocks, own, now),
            _ => panel::<{ ACTS / 2 }>(rows, blocks, own, now),
        }
        done += acts;
    }
}

/// [`multiply`] for `N` rows of activations.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn panel<const N: usize>(
    rows: &[[u8; BLOCK]],
    blocks: usize,
    x: &[[Line; LINES]],
    sums: &mut [TileSums<i32>],
) {
    let piece = blocks.div_ceil(blocks.div_ceil(PIECE));
    for first in (0..blocks).step_by(piece) {
        let count = piece.min(blocks - first);
        for pair in (0..rows.len() / blocks).step_by(2) {
            let row = |number: usize| &rows[number * blocks + first..][..count];
            // The last row of an odd number is paired with itself.
            let second = (pair + 1).min(rows.len() / blocks - 1);
            let found = pair_sums::<N>([row(pair), row(second)], &x[first..], blocks);
            for (sums, found) in sums.iter_mut().zip(found) {
                sums[pair] += found[0];
                if second > pair {
                    sums[second] += found[1];
                }
            }
        }
    }
}

/// Returns Σ (code + 1) · x of two rows of weights with each of `N` rows of activations, which begin `apart` blocks from
/// each other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn pair_sums<const N: usize>(
    rows: [&[[u8; BLOCK]]; 2],
    x: &[[Line; LINES]],
    apart: usize,
) -> [[i32; 2]; N] {
    let blocks = rows[0].len();
    assert!(rows[1].len() == blocks && x.len() >= (N - 1) * apart + blocks);
    // 32 bytes in both halves have 64 adjacent values in their first two fields, and the next ones in the others.
    let shifts = [
        _mm512_inserti64x4::<1>(_mm512_setzero_si512(), _mm256_set1_epi16(2)),
        _mm512_inserti64x4::<1>(_mm512_set1_epi16(4), _mm256_set1_epi16(6)),
    ];
    let mut sums = [[_mm512_setzero_si512(); 2]; N];
    for block in 0..blocks {
        for half in 0..2 {
            // Of both rows, for 64 values and for the next.
            let mut codes = [[_mm512_setzero_si512(); 2]; 2];
            for (number, row) in rows.into_iter().enumerate() {
                if half == 0 {
                    ask(row[block].as_ptr(), BLOCK);
                }
                // SAFETY: 32 bytes lie there.
                let bytes =
                    unsafe { _mm256_loadu_si256(row[block].as_ptr().add(32 * half).cast()) };
                let bytes = _mm512_broadcast_i64x4(bytes);
                for (codes, shifts) in codes.iter_mut().zip(shifts) {
                    let fields = _mm512_srlv_epi16(bytes, shifts);
                    codes[number] = _mm512_and_si512(fields, _mm512_set1_epi8(3));
                }
            }
            for (step, codes) in codes.into_iter().enumerate() {
                for (act, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: each row of activations has so many blocks, and 64 values lie there.
                    let x = unsafe {
                        let x = x.as_ptr().add(act * apart + block).cast::<i8>();
                        _mm512_load_si512(x.add(128 * half + 64 * step).cast())
                    };
                    sums[0] = _mm512_dpbusd_epi32(sums[0], codes[0], x);
                    sums[1] = _mm512_dpbusd_epi32(sums[1], codes[1], x);
                }
            }
        }
    }
    let mut found = [[0; 2]; N];
    if N == ACTS {
        let mut fours = [_mm512_setzero_si512(); 4];
        for (four, sums) in fours.iter_mut().zip(sums.as_chunks::<2>().0) {
            *four = fold_four([sums[0][0], sums[0][1], sums[1][0], sums[1][1]]);
        }
        // SAFETY: sixteen sums fit there.
        unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), fold_fours(fours)) };
    } else {
        for (found, sums) in found.iter_mut().zip(sums) {
            for (found, sums) in found.iter_mut().zip(sums) {
                *found = _mm512_reduce_add_epi32(sums);
            }
        }
    }
    found
}
