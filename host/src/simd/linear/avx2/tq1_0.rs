//! TQ1_0 in place: five digits of base 3 per byte, the first the most significant, of a fraction of 256.
//!
//! Three times a byte modulo 256 is the fraction without its first digit, and the digit is the number of 256/3 and
//! 512/3 that the byte passes. With the signs of bytes flipped, for signed comparisons, three times a byte is flipped
//! as well: 3·(t + 128) is 3·t + 128 modulo 256.

use std::arch::asm;
use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{Blocks, kernels, load_half};
use crate::simd::linear::Line;

struct Tq1_0;

kernels!(Tq1_0);

/// Bytes of a block.
const BLOCK: usize = 54;
/// Start of the second vector of bytes, which ends with the block.
const SECOND: usize = BLOCK - 32;

impl Blocks for Tq1_0 {
    const FORMAT: Format = Format::Tq1_0;
    const LINES: usize = 10;

    /// Digit n of byte m is value 32·n + m. Digit n of byte 32 + m is value 160 + 16·n + m. Digit n of byte 48 + m is
    /// value 240 + 4·n + m; the last four bytes hold four digits.
    fn prepare(x: &[i8], lines: &mut [i8]) {
        for (x, lines) in x.chunks_exact(256).zip(lines.chunks_exact_mut(10 * 32)) {
            let (first, second) = lines.split_at_mut(5 * 32);
            first.copy_from_slice(&x[..160]);
            for (n, second) in second.chunks_exact_mut(32).enumerate() {
                second[32 - SECOND..][..16].copy_from_slice(&x[160 + 16 * n..][..16]);
                if n < 4 {
                    second[48 - SECOND..][..4].copy_from_slice(&x[240 + 4 * n..][..4]);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn two(blocks: *const u8, lines: *const Line) -> __m256i {
        // SAFETY: as the caller promises.
        unsafe {
            let a = block(blocks, lines);
            let b = block(blocks.add(BLOCK), lines.add(5));
            _mm256_add_epi32(
                _mm256_permute2x128_si256::<0x20>(a, b),
                _mm256_permute2x128_si256::<0x31>(a, b),
            )
        }
    }
}

/// Returns Σ digit · x of a block.
///
/// # Safety
/// There must be a block, and five lines; the set must run here.
#[inline(always)]
unsafe fn block(block: *const u8, lines: *const Line) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe {
        let (first, second) = (block.cast(), block.add(SECOND).cast());
        let sum = digits(_mm256_setzero_si256(), _mm256_loadu_si256(first), lines, 0);
        let sum = digits(sum, _mm256_loadu_si256(second), lines, 5);
        _mm256_madd_epi16(sum, _mm256_set1_epi16(1))
    }
}

/// Maximum that [`digits`] adds to 16 bits.
pub(super) const MOST: i32 = 5 * 2 * 2 * 127;

/// Adds Σ digit · x of 32 bytes, in 16 bits; the activations are consecutive halves of lines.
///
/// # Safety
/// Five halves must lie there; the set must run here.
#[inline(always)]
pub(super) unsafe fn digits(
    sum: __m256i,
    bytes: __m256i,
    lines: *const Line,
    half: usize,
) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe {
        // 85 and 170, with the signs flipped.
        let (one, two) = (_mm256_set1_epi8(-43), _mm256_set1_epi8(42));
        let mut sum = sum;
        let mut t = _mm256_xor_si256(bytes, _mm256_set1_epi8(i8::MIN));
        for digit in 0..5 {
            let passed = _mm256_add_epi8(_mm256_cmpgt_epi8(t, one), _mm256_cmpgt_epi8(t, two));
            let products =
                _mm256_maddubs_epi16(_mm256_abs_epi8(passed), load_half(lines, half + digit));
            sum = _mm256_add_epi16(sum, products);
            t = triple(t);
        }
        sum
    }
}

/// Returns 3·t modulo 256 of each byte. The second addition is hidden from the compiler, which would convert a chain of
/// these to multiplications by 9, 27 and 81: three instructions or more for bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn triple(t: __m256i) -> __m256i {
    let mut triple = _mm256_add_epi8(t, t);
    // SAFETY: an addition of registers; the set has it.
    unsafe {
        asm!("vpaddb {0}, {0}, {1}", inout(ymm_reg) triple, in(ymm_reg) t, options(pure, nomem, nostack, preserves_flags));
    }
    triple
}
