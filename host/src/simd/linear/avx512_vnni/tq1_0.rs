//! TQ1_0 in place: five digits of base 3 per byte, the first the most significant, of a fraction of 256.
//!
//! With t₀ the byte and t₍ₙ₊₁₎ = 3·tₙ mod 256, digit n is (3·tₙ − t₍ₙ₊₁₎) / 256. So Σ digit·x is (3·Σ tₙ·xₙ − Σ
//! t₍ₙ₊₁₎·xₙ) / 256 over unsigned bytes, and no digit is ever extracted: two products and two additions for 64 of them.
//! The quotient is exact in each lane, because it is a sum of whole digits' products; a lane's terms stay below
//! 3·5·4·255·127 < 2²¹.
//!
//! These products and additions are what TQ1_0 waits for, not memory, and a block has digits in 52 bytes of 64. So four
//! blocks are three vectors, of their bytes with five digits; the last four bytes of each, of four digits, are side by
//! side in a quarter, both rows' in half a vector.

use std::arch::asm;
use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{self, Blocks};
use super::one_scale::{self, OneScale, scale};
use super::sums::fold_four;
use super::{ask_far, load_lines, tq1_0_short as short};
use crate::simd::linear::{Activations, Line, Rows, Vector};

pub(super) struct Tq1_0;

/// The kernel for activations of 8 bits.
pub(super) fn vector() -> Vector {
    Vector {
        prepare,
        rows: Rows::Wide(rows),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn prepare(x: &[i8], activations: &mut Activations) {
    if x.len() < short::LONG {
        short::prepare(x, activations);
    } else {
        blocks::bytes::<Tq1_0>(x, activations);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]
fn rows(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    if x.len < short::LONG {
        short::rows(bytes, x, out);
    } else {
        one_scale::rows::<Tq1_0>(bytes, x, out);
    }
}

/// Bytes of a block.
pub(super) const BLOCK: usize = 54;
/// The bytes with five digits, those with four digits after them, and then the scale.
const FIVES: usize = 48;
pub(super) const SCALE: usize = 52;
/// Vectors of the bytes with five digits of four blocks, without what lies between them.
const VECTORS: usize = 3;
/// Bytes from such a vector's address to that of the next one.
const VECTOR: usize = BLOCK + 16;
/// The line of activations of the four blocks' last bytes: their first digits, then their second ones, and so on.
const LAST: usize = 5 * VECTORS;

impl Blocks for Tq1_0 {
    const FORMAT: Format = Format::Tq1_0;
    const LINES: usize = LAST + 1;
    const STEP: usize = 4;

    /// Digit n of byte m is value 32·n + m. Digit n of byte 32 + m is value 160 + 16·n + m. Digit n of byte 48 + m is
    /// value 240 + 4·n + m; the last four bytes hold four digits.
    #[inline(always)]
    unsafe fn prepare(x: &[i8], lines: &mut [Line]) {
        for (block, x) in x.chunks_exact(256).enumerate() {
            // Each sixteen bytes are in one line.
            let mut put = |digit: usize, at: usize, x: &[i8]| {
                let at = FIVES * block + at;
                lines[5 * (at / 64) + digit].0[at % 64..][..16].copy_from_slice(&x[..16]);
            };
            for digit in 0..5 {
                put(digit, 0, &x[32 * digit..]);
                put(digit, 16, &x[32 * digit + 16..]);
                put(digit, 32, &x[160 + 16 * digit..]);
            }
            for (digit, x) in x[240..].chunks_exact(4).enumerate() {
                lines[LAST].0[16 * digit + 4 * block..][..4].copy_from_slice(x);
            }
        }
    }

    /// The sums of each block are in a quarter of the vector.
    #[inline(always)]
    #[expect(
        clippy::needless_range_loop,
        reason = "planes count through several tables"
    )]
    unsafe fn four<const P: usize>(
        blocks: [*const u8; 2],
        lines: [*const Line; P],
    ) -> [[__m512i; P]; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            let mut found = [[_mm512_setzero_si512(); P]; 2];
            let last = last_bytes::<4>(blocks);
            let mut lasts = [[_mm_setzero_si128(); 2]; P];
            for plane in 0..P {
                let mut sums = [_mm256_setzero_si256(); 2];
                add_last(&mut sums, last, lines[plane].add(LAST).cast());
                lasts[plane] = last_totals(sums);
            }
            for row in 0..2 {
                let mut vectors = [[_mm512_setzero_si512(); VECTORS]; P];
                for vector in 0..VECTORS {
                    let mut sums = [[_mm512_setzero_si512(); 2]; P];
                    let mut t = bytes(blocks[row], vector);
                    for digit in 0..5 {
                        let next = triple(t);
                        for plane in 0..P {
                            let x = _mm512_load_si512(lines[plane].add(5 * vector + digit).cast());
                            sums[plane][0] = _mm512_dpbusd_epi32(sums[plane][0], t, x);
                            sums[plane][1] = _mm512_dpbusd_epi32(sums[plane][1], next, x);
                        }
                        t = next;
                    }
                    for plane in 0..P {
                        vectors[plane][vector] = total(sums[plane]);
                    }
                }
                for plane in 0..P {
                    // A lane of the last bytes is a block's.
                    let lanes = _mm512_castsi128_si512(lasts[plane][row]);
                    let spread = _mm512_maskz_expand_epi32(0x1111, lanes);
                    found[row][plane] = _mm512_add_epi32(by_block(vectors[plane]), spread);
                }
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i {
        // SAFETY: the caller has the set.
        unsafe { _mm512_srai_epi32::<8>(fold_four(fours)) }
    }
}

impl OneScale for Tq1_0 {
    /// A lane is at most 256 · 3 · 5 · 4 · 255 · 127, below 2²⁹.
    #[inline(always)]
    unsafe fn whole(rows: [&[u8]; 2], lines: &[Line]) -> ([i32; 2], [u16; 2], bool) {
        let first = [scale(&rows[0][SCALE..]), scale(&rows[1][SCALE..])];
        let (fours, rest) = (
            rows[0].len() / (4 * BLOCK),
            rows[0].len() % (4 * BLOCK) / BLOCK,
        );
        // SAFETY: as the caller promises; so many blocks and their lines lie there.
        unsafe {
            let mut sums = Sums {
                fives: [[_mm512_setzero_si512(); 2]; 2],
                halves: [_mm512_setzero_si512(); 2],
                lasts: [_mm256_setzero_si256(); 2],
                other: 0,
            };
            for four in 0..fours {
                sums.add::<4>(rows, lines, four, first);
            }
            match rest {
                0 => {}
                1 => sums.add::<1>(rows, lines, fours, first),
                2 => sums.add::<2>(rows, lines, fours, first),
                _ => sums.add::<3>(rows, lines, fours, first),
            }
            let mut all = [_mm512_setzero_si512(); 2];
            for (all, &fives) in all.iter_mut().zip(&sums.fives) {
                *all = total(fives);
            }
            if rest >= 2 {
                let halves = total(sums.halves);
                all[0] = _mm512_mask_add_epi32(all[0], 0xFF, all[0], halves);
                all[1] = _mm512_mask_add_epi32(all[1], 0xFF00, all[1], halves);
            }
            for (all, last) in all.iter_mut().zip(last_totals(sums.lasts)) {
                *all = _mm512_add_epi32(*all, _mm512_zextsi128_si512(last));
            }
            let mut dots = [0; 2];
            for (dot, all) in dots.iter_mut().zip(all) {
                *dot = _mm512_reduce_add_epi32(_mm512_srai_epi32::<8>(all));
            }
            (dots, first, sums.other == 0)
        }
    }
}

/// The sums of two rows.
struct Sums {
    /// Of the bytes with five digits.
    fives: [[__m512i; 2]; 2],
    /// Of bytes that fill at most half a vector: the first row's in the low half, the second one's in the high one.
    halves: [__m512i; 2],
    /// Of the last bytes: the first row's in the low half, the second one's in the high one.
    lasts: [__m256i; 2],
    /// Not 0 if a block had another scale than the first.
    other: u16,
}

impl Sums {
    /// Adds the products of `N` blocks of both rows, after `four` times four.
    ///
    /// # Safety
    /// There must be so many blocks, and the lines of four; the set must run here.
    #[inline(always)]
    unsafe fn add<const N: usize>(
        &mut self,
        rows: [&[u8]; 2],
        lines: &[Line],
        four: usize,
        scales: [u16; 2],
    ) {
        let from = 4 * BLOCK * four;
        // Both rows' blocks are before those of the next two.
        ask_far(rows[0].as_ptr().wrapping_add(2 * from), 2 * N * BLOCK);
        // SAFETY: as the caller promises.
        unsafe {
            let blocks = rows.map(|row| row.as_ptr().add(from));
            let lines = lines.as_ptr().add(Tq1_0::LINES * four);
            let last = lines.add(LAST).cast::<__m128i>();
            for vector in 0..N - 1 {
                let x = load_lines::<5>(lines.add(5 * vector));
                for (sums, row) in self.fives.iter_mut().zip(blocks) {
                    add(sums, bytes(row, vector), x);
                }
            }
            match N {
                // One block has its last bytes in the same vector.
                1 => {
                    let mut x = load_lines::<5>(lines);
                    for (digit, x) in x.iter_mut().take(4).enumerate() {
                        let last = _mm_load_si128(last.add(digit));
                        *x = _mm512_mask_broadcastd_epi32(*x, 1 << 12, last);
                    }
                    for (sums, row) in self.fives.iter_mut().zip(blocks) {
                        let mask = (1 << SCALE) - 1;
                        add(sums, _mm512_maskz_loadu_epi8(mask, row.cast()), x);
                    }
                }
                // What is left fills at most half a vector.
                2 | 3 => {
                    let mut x = load_lines::<5>(lines.add(5 * (N - 1)));
                    let mask = if N == 2 { !0 } else { 0xFFFF };
                    let at = VECTOR * (N - 1);
                    let low = _mm256_maskz_loadu_epi8(mask, blocks[0].add(at).cast());
                    let high = _mm256_maskz_loadu_epi8(mask, blocks[1].add(at).cast());
                    for x in &mut x {
                        *x = _mm512_shuffle_i64x2::<0b01_00_01_00>(*x, *x);
                    }
                    let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                    add(&mut self.halves, both, x);
                }
                _ => {}
            }
            if N > 1 {
                add_last(&mut self.lasts, last_bytes::<N>(blocks), last);
            }
            for (row, scale) in blocks.into_iter().zip(scales) {
                for block in 0..N {
                    let own = row.add(BLOCK * block + SCALE).cast::<u16>();
                    self.other |= own.read_unaligned() ^ scale;
                }
            }
        }
    }
}

/// Loads a vector of the bytes with five digits.
///
/// # Safety
/// There must be more blocks by two than the number of the vector, and the set must run here.
#[inline(always)]
unsafe fn bytes(blocks: *const u8, vector: usize) -> __m512i {
    let at = blocks.wrapping_add(VECTOR * vector);
    // SAFETY: as the caller promises: what is loaded lies between the vector's first byte and the next block's last.
    unsafe {
        match vector {
            0 => _mm512_inserti32x4::<3>(
                _mm512_loadu_si512(at.cast()),
                _mm_loadu_si128(at.add(BLOCK).cast()),
            ),
            1 => _mm512_inserti64x4::<1>(
                _mm512_castsi256_si512(_mm256_loadu_si256(at.cast())),
                _mm256_loadu_si256(at.add(BLOCK - 16).cast()),
            ),
            _ => _mm512_inserti32x4::<0>(
                _mm512_loadu_si512(at.add(BLOCK - FIVES).cast()),
                _mm_loadu_si128(at.cast()),
            ),
        }
    }
}

/// Loads the last bytes with digits of `N` blocks: the first row's in the low half, the second one's in the high one.
///
/// # Safety
/// There must be `N` blocks at either address, and the set must run here.
#[inline(always)]
unsafe fn last_bytes<const N: usize>(blocks: [*const u8; 2]) -> __m256i {
    let mut lanes = [0; 8];
    for (lanes, row) in lanes.chunks_exact_mut(4).zip(blocks) {
        for (block, lane) in lanes.iter_mut().take(N).enumerate() {
            let at = row.wrapping_add(BLOCK * block + FIVES);
            // SAFETY: as the caller promises.
            *lane = unsafe { at.cast::<i32>().read_unaligned() };
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    // SAFETY: the set runs here.
    unsafe { _mm256_setr_epi32(a, b, c, d, e, f, g, h) }
}

/// Adds Σ tₙ·xₙ and Σ t₍ₙ₊₁₎·xₙ of the last bytes, of four digits, with the four quarters of a line.
///
/// # Safety
/// There must be a line, and the set must run here.
#[inline(always)]
unsafe fn add_last([now, next]: &mut [__m256i; 2], bytes: __m256i, line: *const __m128i) {
    let mut t = bytes;
    for digit in 0..4 {
        // SAFETY: as the caller promises.
        unsafe {
            let x = _mm256_broadcastsi128_si256(_mm_load_si128(line.add(digit)));
            *now = _mm256_dpbusd_epi32(*now, t, x);
            t = triple_half(t);
            *next = _mm256_dpbusd_epi32(*next, t, x);
        }
    }
}

/// Returns 256 · Σ digit · x of these sums of last bytes: the first row's, and the second one's.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn last_totals([now, next]: [__m256i; 2]) -> [__m128i; 2] {
    // SAFETY: as the caller promises.
    unsafe {
        let three = _mm256_add_epi32(_mm256_add_epi32(now, now), now);
        let all = _mm256_sub_epi32(three, next);
        [
            _mm256_castsi256_si128(all),
            _mm256_extracti128_si256::<1>(all),
        ]
    }
}

/// Puts the sums of each of four blocks, three quarters of these vectors one after another, into a quarter.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn by_block([a, b, c]: [__m512i; VECTORS]) -> __m512i {
    // Quarters, by the number of their block: a = 0 0 0 1, b = 1 1 2 2, c = 2 3 3 3.
    const OUTER: u16 = 0xF00F;
    // SAFETY: as the caller promises.
    unsafe {
        let one = _mm512_shuffle_i32x4::<0b01_00_11_00>(a, c);
        let two = _mm512_shuffle_i32x4::<0b10_10_00_00>(b, b);
        let two = _mm512_mask_shuffle_i32x4::<0b10_00_00_01>(two, OUTER, a, c);
        let three = _mm512_shuffle_i32x4::<0b11_11_01_01>(b, b);
        let three = _mm512_mask_shuffle_i32x4::<0b11_00_00_10>(three, OUTER, a, c);
        _mm512_add_epi32(one, _mm512_add_epi32(two, three))
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

/// Does [`triple`] in half a vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn triple_half(t: __m256i) -> __m256i {
    let mut triple = _mm256_add_epi8(t, t);
    // SAFETY: an addition of registers; the set has it.
    unsafe {
        asm!("vpaddb {0}, {0}, {1}", inout(ymm_reg) triple, in(ymm_reg) t, options(pure, nomem, nostack, preserves_flags));
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
