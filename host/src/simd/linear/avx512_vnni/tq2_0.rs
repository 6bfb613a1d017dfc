//! TQ2_0 in place. A block's 64 bytes of codes are one vector: bits 2·n and 2·n + 1 of byte 32·h + m are the code of
//! value 128·h + 32·n + m, so four vectors of activations are multiplied with the four fields of each byte.
//!
//! The fields are not shifted down one by one. Fields 1 and 3 are used first in their place in a nibble, 4 times too
//! large, and their sum is shifted down before fields 0 and 2 are added.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{Blocks, kernels};
use super::load_lines;
use super::sums::{fold_four, fold_fours};
use crate::simd::linear::Line;

struct Tq2_0;

/// Bytes of a block.
const BLOCK: usize = 66;

kernels!(Tq2_0);

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
    unsafe fn four(blocks: [*const u8; 2], lines: *const Line) -> [__m512i; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            let mut dots = [[_mm512_setzero_si512(); 4]; 2];
            for block in 0..4 {
                let x = load_lines::<4>(lines.add(4 * block));
                for row in 0..2 {
                    let codes = _mm512_loadu_si512(blocks[row].add(block * BLOCK).cast());
                    dots[row][block] = dot(codes, x);
                }
            }
            [fold_four(dots[0]), fold_four(dots[1])]
        }
    }

    #[inline(always)]
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i {
        // SAFETY: the caller has the set.
        unsafe { fold_fours(fours) }
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
