//! TQ1_0 in place: five digits of base 3 per byte, the first the most significant, of a fraction of 256.
//!
//! With t₀ the byte and t₍ₙ₊₁₎ = 3·tₙ mod 256, digit n is (3·tₙ − t₍ₙ₊₁₎) / 256. So Σ digit·x is (3·Σ tₙ·xₙ − Σ
//! t₍ₙ₊₁₎·xₙ) / 256 over unsigned bytes, and no digit is ever extracted: two products and two additions for 64 of them.
//! The quotient is exact in each lane, because it is a sum of whole digits' products; a lane's terms stay below
//! 3·5·4·255·127 < 2²¹.

use std::arch::asm;
use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::Blocks;
use super::one_scale::{OneScale, scale};
use super::sums::{fold_four, fold_fours};
use super::{ask_far, load_lines};
use crate::simd::linear::Line;

pub(super) struct Tq1_0;

/// Bytes of a block.
const BLOCK: usize = 54;
/// The bytes with digits, which the scale follows.
const DIGIT_BYTES: usize = 52;
const DIGITS: u64 = (1 << DIGIT_BYTES) - 1;

impl Blocks for Tq1_0 {
    const FORMAT: Format = Format::Tq1_0;
    const LINES: usize = 20;
    const STEP: usize = 1;

    /// Digit n of byte m is value 32·n + m. Digit n of byte 32 + m is value 160 + 16·n + m. Digit n of byte 48 + m is
    /// value 240 + 4·n + m; the last four bytes hold four digits.
    #[inline(always)]
    unsafe fn prepare(x: &[i8], lines: &mut [Line]) {
        for (x, lines) in x.chunks_exact(256).zip(lines.chunks_exact_mut(5)) {
            for (n, line) in lines.iter_mut().enumerate() {
                line.0[..32].copy_from_slice(&x[32 * n..][..32]);
                line.0[32..48].copy_from_slice(&x[160 + 16 * n..][..16]);
                if n < 4 {
                    line.0[48..52].copy_from_slice(&x[240 + 4 * n..][..4]);
                }
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
            let mut found = [[_mm512_setzero_si512(); P]; 2];
            for row in 0..2 {
                let mut dots = [[_mm512_setzero_si512(); 4]; P];
                for block in 0..4 {
                    let mut sums = [[_mm512_setzero_si512(); 2]; P];
                    let mut t = bytes(blocks[row].add(block * BLOCK));
                    for digit in 0..5 {
                        let next = triple(t);
                        for plane in 0..P {
                            let x = _mm512_load_si512(lines[plane].add(5 * block + digit).cast());
                            sums[plane][0] = _mm512_dpbusd_epi32(sums[plane][0], t, x);
                            sums[plane][1] = _mm512_dpbusd_epi32(sums[plane][1], next, x);
                        }
                        t = next;
                    }
                    for plane in 0..P {
                        dots[plane][block] = total(sums[plane]);
                    }
                }
                for plane in 0..P {
                    found[row][plane] = fold_four(dots[plane]);
                }
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i {
        // SAFETY: the caller has the set.
        unsafe { _mm512_srai_epi32::<8>(fold_fours(fours)) }
    }
}

impl OneScale for Tq1_0 {
    /// A lane is at most 256 · 3 · 5 · 4 · 255 · 127, below 2²⁹.
    #[inline(always)]
    unsafe fn whole(rows: [&[u8]; 2], lines: &[Line]) -> ([i32; 2], bool) {
        let first = [
            scale(&rows[0][DIGIT_BYTES..]),
            scale(&rows[1][DIGIT_BYTES..]),
        ];
        // SAFETY: as the caller promises; blocks and their lines lie there.
        unsafe {
            let mut sums = [[_mm512_setzero_si512(); 2]; 2];
            let mut other = 0;
            for (at, lines) in (0..rows[0].len())
                .step_by(BLOCK)
                .zip(lines.as_chunks::<5>().0)
            {
                // Both rows' blocks are before those of the next two.
                ask_far(rows[0].as_ptr().wrapping_add(2 * at), 2 * BLOCK);
                let x = load_lines::<5>(lines.as_ptr());
                for ((sums, row), first) in sums.iter_mut().zip(rows).zip(first) {
                    let block = row.as_ptr().add(at);
                    other |= block.add(DIGIT_BYTES).cast::<u16>().read_unaligned() ^ first;
                    add(sums, bytes(block), x);
                }
            }
            let mut dots = [0; 2];
            for (dot, sums) in dots.iter_mut().zip(sums) {
                *dot = _mm512_reduce_add_epi32(_mm512_srai_epi32::<8>(total(sums)));
            }
            (dots, other == 0)
        }
    }
}

/// Loads the digits of a block.
///
/// # Safety
/// There must be a block, and the set must run here.
#[inline(always)]
unsafe fn bytes(block: *const u8) -> __m512i {
    // SAFETY: as the caller promises; the mask leaves out what lies behind the digits.
    unsafe { _mm512_maskz_loadu_epi8(DIGITS, block.cast()) }
}

/// Returns 256 · Σ digit · x, by lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn digits(bytes: __m512i, x: [__m512i; 5]) -> __m512i {
    let mut sums = [_mm512_setzero_si512(); 2];
    add(&mut sums, bytes, x);
    total(sums)
}

/// Adds Σ tₙ·xₙ and Σ t₍ₙ₊₁₎·xₙ.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn add([now, next]: &mut [__m512i; 2], bytes: __m512i, x: [__m512i; 5]) {
    let mut t = bytes;
    for x in x {
        *now = _mm512_dpbusd_epi32(*now, t, x);
        t = triple(t);
        *next = _mm512_dpbusd_epi32(*next, t, x);
    }
}

/// Returns 3·t modulo 256 of each byte. The second addition is hidden from the compiler, which would convert a chain of
/// these to multiplications by 9, 27 and 81: three or four instructions for bytes, one of them with a table.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn triple(t: __m512i) -> __m512i {
    let mut triple = _mm512_add_epi8(t, t);
    // SAFETY: an addition of registers; the set has it.
    unsafe {
        asm!("vpaddb {0}, {0}, {1}", inout(zmm_reg) triple, in(zmm_reg) t, options(pure, nomem, nostack, preserves_flags));
    }
    triple
}

/// Returns 256 · Σ digit · x of these sums.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn total([now, next]: [__m512i; 2]) -> __m512i {
    let three = _mm512_add_epi32(_mm512_add_epi32(now, now), now);
    _mm512_sub_epi32(three, next)
}
