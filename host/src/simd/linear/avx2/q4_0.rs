//! Q4_0 in place: a scale and sixteen bytes, with value m in the lower half of byte m, value 16 + m in the upper one.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{Blocks, kernels, load_half, load_two};
use super::q8_0::halves;
use crate::simd::linear::Line;

struct Q4_0;

kernels!(Q4_0);

/// Bytes of a block.
const BLOCK: usize = 18;

impl Blocks for Q4_0 {
    const FORMAT: Format = Format::Q4_0;
    const LINES: usize = 1;

    fn prepare(x: &[i8], lines: &mut [i8]) {
        halves(x, lines);
    }

    /// Four products of at most 15·127 are added in 16 bits.
    #[inline(always)]
    unsafe fn two(blocks: *const u8, lines: *const Line) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe {
            let nibble = _mm256_set1_epi8(15);
            let bytes = load_two(blocks.add(2), blocks.add(BLOCK + 2));
            let lower = _mm256_and_si256(bytes, nibble);
            let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
            let lower = _mm256_maddubs_epi16(lower, load_half(lines, 0));
            let upper = _mm256_maddubs_epi16(upper, load_half(lines, 1));
            _mm256_madd_epi16(_mm256_add_epi16(lower, upper), _mm256_set1_epi16(1))
        }
    }
}
