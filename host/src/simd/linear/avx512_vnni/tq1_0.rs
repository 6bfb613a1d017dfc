//! TQ1_0 in place: five digits of base 3 per byte, the first the most significant, of a fraction of 256.
//!
//! With t₀ the byte and t₍ₙ₊₁₎ = 3·tₙ mod 256, digit n is (3·tₙ − t₍ₙ₊₁₎) / 256. So Σ digit·x is (3·Σ tₙ·xₙ − Σ
//! t₍ₙ₊₁₎·xₙ) / 256 over unsigned bytes, and no digit is ever extracted: two products and two additions for 64 of them.
//! The quotient is exact in each lane, because it is a sum of whole digits' products; a lane's terms stay below
//! 3·5·4·255·127 < 2²¹.

use std::arch::asm;
use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{Blocks, kernels};
use super::load_lines;
use super::sums::{fold_four, fold_fours};
use crate::simd::linear::Line;

struct Tq1_0;

/// Bytes of a block.
const BLOCK: usize = 54;
/// The bytes with digits.
const DIGITS: u64 = (1 << 52) - 1;

kernels!(Tq1_0);

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
    unsafe fn four(blocks: [*const u8; 2], lines: *const Line) -> [__m512i; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            // As separate variables, so that they stay in registers.
            let [a, b, c, d] = [
                block(blocks, lines, 0),
                block(blocks, lines, 1),
                block(blocks, lines, 2),
                block(blocks, lines, 3),
            ];
            [
                fold_four([a[0], b[0], c[0], d[0]]),
                fold_four([a[1], b[1], c[1], d[1]]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i {
        // SAFETY: the caller has the set.
        unsafe { _mm512_srai_epi32::<8>(fold_fours(fours)) }
    }
}

/// Returns 256 · Σ digit · x of a block in two rows.
///
/// # Safety
/// There must be that block at both addresses, and its lines; the set must run here.
#[inline(always)]
unsafe fn block(rows: [*const u8; 2], lines: *const Line, number: usize) -> [__m512i; 2] {
    // SAFETY: as the caller promises; the mask leaves out what lies behind a block.
    unsafe {
        let x = load_lines::<5>(lines.add(5 * number));
        let bytes = |row: *const u8| {
            let at = row.wrapping_add(number * BLOCK);
            _mm512_maskz_loadu_epi8(DIGITS, at.cast())
        };
        [digits(bytes(rows[0]), x), digits(bytes(rows[1]), x)]
    }
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
