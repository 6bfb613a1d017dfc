//! Q8_0 in place: a scale and 32 codes. `vpmaddubsw` multiplies |w| by x with the sign of w: two products are at most
//! 2·128·127 = 32,512, because no activation is −128.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{Blocks, kernels, load_half, load_two};
use crate::simd::linear::Line;

struct Q8_0;

kernels!(Q8_0);

/// Bytes of a block.
const BLOCK: usize = 34;

impl Blocks for Q8_0 {
    const FORMAT: Format = Format::Q8_0;
    const LINES: usize = 1;
    const OFFSET: i32 = 0;

    fn prepare(x: &[i8], lines: &mut [i8]) {
        halves(x, lines);
    }

    #[inline(always)]
    unsafe fn two(blocks: *const u8, lines: *const Line) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe {
            let ones = _mm256_set1_epi16(1);
            let mut sum = _mm256_setzero_si256();
            for half in 0..2 {
                let at = blocks.add(2 + 16 * half);
                let codes = load_two(at, at.add(BLOCK));
                let x = _mm256_sign_epi8(load_half(lines, half), codes);
                let products = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), x);
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, ones));
            }
            sum
        }
    }
}

/// Stores the first sixteen activations of each of two blocks of 32, and then the others.
pub(super) fn halves(x: &[i8], lines: &mut [i8]) {
    for (block, x) in x.chunks_exact(32).enumerate() {
        lines[16 * block..][..16].copy_from_slice(&x[..16]);
        lines[32 + 16 * block..][..16].copy_from_slice(&x[16..]);
    }
}
