//! Rows of one to three blocks of [TQ1_0](super::tq1_0), as small models have: the activations stay in registers, and
//! four rows are folded at a time.

use std::arch::x86_64::*;

use half::f16;

use super::one_scale::scale;
use super::sums::{fold_four, four_sums, store_four};
use super::tq1_0::{BLOCK, SCALE, add, total};
use super::{ask, load_lines};
use crate::simd::blocks::codes::fixed;
use crate::simd::linear::{Activations, Line, Start};

/// Values of a block.
const LEN: usize = 256;
/// Columns of rows that are longer.
pub(super) const LONG: usize = 4 * LEN;

/// Stores for each block the activations of its bytes' first digits, then of their second ones, and so on; and Σx of
/// each.
pub(super) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); x.len() / LEN * 5];
    let mut start = Start([0; 16]);
    let blocks = activations.lines.chunks_exact_mut(5);
    for ((x, lines), sum) in x.chunks_exact(LEN).zip(blocks).zip(&mut start.0) {
        for (digit, line) in lines.iter_mut().enumerate() {
            line.0[..32].copy_from_slice(&x[32 * digit..][..32]);
            line.0[32..48].copy_from_slice(&x[160 + 16 * digit..][..16]);
            if digit < 4 {
                line.0[48..52].copy_from_slice(&x[240 + 4 * digit..][..4]);
            }
        }
        *sum = x.iter().map(|&x| i32::from(x)).sum();
    }
    activations.start = vec![start];
}

/// Processes rows in place.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn rows(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    match x.len / LEN {
        0 => out.fill(0),
        1 => rows_of::<1>(bytes, x, out),
        2 => rows_of::<2>(bytes, x, out),
        _ => rows_of::<3>(bytes, x, out),
    }
}

/// Processes rows of `BLOCKS` blocks, four at a time while all have the first one's scale.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn rows_of<const BLOCKS: usize>(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let row_bytes = BLOCKS * BLOCK;
    assert!(bytes.len() == out.len() * row_bytes && x.lines.len() == BLOCKS * 5);
    let Some(first) = bytes.get(SCALE..BLOCK).map(scale) else {
        return;
    };
    let all_scale = fixed(f16::from_bits(first));
    let less = &x.start[0].0[..BLOCKS];
    let all_less: i32 = less.iter().sum();
    let mut lines = [[_mm512_setzero_si512(); 5]; BLOCKS];
    for (block, lines) in lines.iter_mut().enumerate() {
        // SAFETY: there are five lines for each block.
        *lines = unsafe { load_lines(x.lines.as_ptr().add(5 * block)) };
    }
    for (rows, out) in bytes.chunks(4 * row_bytes).zip(out.chunks_mut(4)) {
        ask(rows.as_ptr(), rows.len());
        let mut sums = [_mm512_setzero_si512(); 4];
        let mut other = 0;
        for (row, sum) in rows.chunks_exact(row_bytes).zip(&mut sums) {
            let mut own = [_mm512_setzero_si512(); 2];
            for (block, &lines) in row.chunks_exact(BLOCK).zip(&lines) {
                other |= scale(&block[SCALE..]) ^ first;
                add(&mut own, digits(block), lines);
            }
            *sum = total(own);
        }
        if other == 0 {
            let mut dots = [0; 4];
            // At most 256 · 3 · 256 · 2 · 128.
            let sums = four_sums(fold_four(sums));
            store_four(_mm_srai_epi32::<8>(sums), &mut dots);
            for (out, dot) in out.iter_mut().zip(dots) {
                *out = i64::from(dot - all_less) * all_scale;
            }
            continue;
        }
        for (row, out) in rows.chunks_exact(row_bytes).zip(out) {
            *out = 0;
            for ((block, &lines), less) in row.chunks_exact(BLOCK).zip(&lines).zip(less) {
                let mut own = [_mm512_setzero_si512(); 2];
                add(&mut own, digits(block), lines);
                let dot = _mm512_reduce_add_epi32(total(own)) >> 8;
                *out += i64::from(dot - less) * fixed(f16::from_bits(scale(&block[SCALE..])));
            }
        }
    }
}

/// Loads the bytes with digits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn digits(block: &[u8]) -> __m512i {
    assert!(block.len() == BLOCK);
    // SAFETY: the mask selects bytes of the block.
    unsafe { _mm512_maskz_loadu_epi8((1 << SCALE) - 1, block.as_ptr().cast()) }
}
