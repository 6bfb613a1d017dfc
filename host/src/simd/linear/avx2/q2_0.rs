//! Q2_0 in place: a scale and sixteen bytes, with value 4·m + n in field n of byte m.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{Blocks, kernels, load_half, load_two};
use crate::simd::linear::Line;

struct Q2_0;

kernels!(Q2_0);

/// Bytes of a block.
const BLOCK: usize = 18;

impl Blocks for Q2_0 {
    const FORMAT: Format = Format::Q2_0;
    const LINES: usize = 2;

    fn prepare(x: &[i8], lines: &mut [i8]) {
        for (byte, x) in x.as_chunks::<4>().0.iter().enumerate() {
            for (field, &x) in x.iter().enumerate() {
                lines[32 * field + byte] = x;
            }
        }
    }

    /// Eight products of at most 3·127 are added in 16 bits.
    #[inline(always)]
    unsafe fn two(blocks: *const u8, lines: *const Line) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe {
            let bytes = load_two(blocks.add(2), blocks.add(BLOCK + 2));
            let fields = [
                bytes,
                _mm256_srli_epi16::<2>(bytes),
                _mm256_srli_epi16::<4>(bytes),
                _mm256_srli_epi16::<6>(bytes),
            ];
            let mut sum = _mm256_setzero_si256();
            for (field, bytes) in fields.into_iter().enumerate() {
                let codes = _mm256_and_si256(bytes, _mm256_set1_epi8(3));
                let products = _mm256_maddubs_epi16(codes, load_half(lines, field));
                sum = _mm256_add_epi16(sum, products);
            }
            _mm256_madd_epi16(sum, _mm256_set1_epi16(1))
        }
    }
}
