//! Blocks of 32 and of 64: sixteen bytes of each of four blocks side by side, gathered by one shuffle of two vectors,
//! so that four lanes belong to one block.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::blocks::{self, Blocks};
use super::sums::fold_four;
use super::{load_lines, tq2_0};
use crate::simd::linear::Line;

/// A format of which four blocks use [`Fours::LINES`] adjacent lines.
trait Fours: Sized {
    const FORMAT: Format;
    const LINES: usize;

    /// Orders the activations of four blocks: for blocks of 32, the first sixteen of each, and then the others.
    #[inline(always)]
    fn lay(x: &[i8], lines: &mut [Line]) {
        for (half, line) in lines.iter_mut().enumerate() {
            for (line, x) in line.0.chunks_exact_mut(16).zip(x.chunks_exact(32)) {
                line.copy_from_slice(&x[16 * half..][..16]);
            }
        }
    }

    /// Returns Σ code · x of four blocks for each plane, four lanes each.
    ///
    /// # Safety
    /// There must be four blocks, and [`Fours::LINES`] lines of each plane; the set must run here.
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P];
}

/// Returns Σ code · x for each plane: of the first line, and of the second one.
///
/// # Safety
/// There must be two lines of each plane; the set must run here.
#[inline(always)]
unsafe fn both<const P: usize>(
    first: __m512i,
    second: __m512i,
    lines: [*const Line; P],
) -> [__m512i; P] {
    // SAFETY: as the caller promises.
    unsafe {
        let mut sums = [_mm512_setzero_si512(); P];
        for (sum, lines) in sums.iter_mut().zip(lines) {
            let x = load_lines::<2>(lines);
            *sum = _mm512_dpbusd_epi32(*sum, first, x[0]);
            *sum = _mm512_dpbusd_epi32(*sum, second, x[1]);
        }
        sums
    }
}

impl<F: Fours> Blocks for F {
    const FORMAT: Format = <F as Fours>::FORMAT;
    const LINES: usize = <F as Fours>::LINES;
    const STEP: usize = 4;

    #[inline(always)]
    unsafe fn prepare(x: &[i8], lines: &mut [Line]) {
        F::lay(x, lines);
    }

    #[inline(always)]
    unsafe fn four<const P: usize>(
        blocks: [*const u8; 2],
        lines: [*const Line; P],
    ) -> [[__m512i; P]; 2] {
        // SAFETY: as the caller promises.
        unsafe { [F::dot(blocks[0], lines), F::dot(blocks[1], lines)] }
    }

    /// Lane 4·i + r is block i of four r.
    #[inline(always)]
    unsafe fn sixteen(fours: [__m512i; 4]) -> __m512i {
        // SAFETY: as the caller promises.
        unsafe { fold_four(fours) }
    }

    #[inline(always)]
    unsafe fn scales(at: *const u8) -> [__m256i; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            match <F as Fours>::FORMAT.bytes() {
                18 => [scales_of_eighteen(at); 2],
                20 => scales_of_twenty(at),
                _ => blocks::scales::<F>(at, 16),
            }
        }
    }
}

/// Returns the places of sixteen bytes of four blocks in two vectors: those from `at` on in the first, and then, from
/// `from` on, those of the second, if a block begins every `block` bytes.
const fn places(block: usize, at: usize, from: usize) -> [u8; 64] {
    let mut places = [0; 64];
    let mut byte = 0;
    while byte < 64 {
        let place = byte / 16 * block + at + byte % 16;
        // The lower six bits are a byte's number, the next one selects the vector.
        places[byte] = match place {
            0..64 => place as u8,
            _ => (place - from + 64) as u8,
        };
        byte += 1;
    }
    places
}

/// Returns sixteen bytes from `at` on of four blocks with `block` bytes each, from two vectors `second` bytes apart.
///
/// # Safety
/// There must be 64 bytes at both, and the set must run here.
#[inline(always)]
unsafe fn gather(blocks: *const u8, second: usize, places: &[u8; 64]) -> __m512i {
    // SAFETY: as the caller promises.
    unsafe {
        let low = _mm512_loadu_si512(blocks.cast());
        let high = _mm512_loadu_si512(blocks.add(second).cast());
        let places = _mm512_loadu_si512(places.as_ptr().cast());
        _mm512_permutex2var_epi8(low, places, high)
    }
}

/// Places of the codes of blocks of 18 bytes, in vectors 8 bytes apart.
const EIGHTEEN: [u8; 64] = places(18, 2, 8);

/// Places of their sixteen scales in two vectors: those of four blocks are in their first 64 bytes, nine words apart,
/// and lane 4·i + r is block i of four r. The fours are at the start of the vectors in turn.
const SCALES: [u16; 32] = {
    let mut places = [0; 32];
    let mut lane = 0;
    while lane < 16 {
        places[lane] = lane as u16 / 4 * 9 + lane as u16 % 2 * 32;
        lane += 1;
    }
    places
};

/// Returns the scales of sixteen of them, by lanes.
///
/// # Safety
/// There must be sixteen blocks, and the set must run here.
#[inline(always)]
unsafe fn scales_of_eighteen(blocks: *const u8) -> __m256i {
    const FOUR: usize = 4 * 18;
    // SAFETY: as the caller promises.
    unsafe {
        let places = _mm512_loadu_si512(SCALES.as_ptr().cast());
        let a = _mm512_loadu_si512(blocks.cast());
        let b = _mm512_loadu_si512(blocks.add(FOUR).cast());
        let c = _mm512_loadu_si512(blocks.add(2 * FOUR).cast());
        let d = _mm512_loadu_si512(blocks.add(3 * FOUR).cast());
        let first = _mm512_castsi512_si256(_mm512_permutex2var_epi16(a, places, b));
        let second = _mm512_castsi512_si256(_mm512_permutex2var_epi16(c, places, d));
        _mm256_mask_blend_epi16(0xCCCC, first, second)
    }
}

/// Places of the sixteen scales and minima of blocks of 20 bytes in two vectors, as pairs of words: those of four blocks
/// are in their first 64 bytes, five pairs apart.
const PAIRS: [u32; 32] = {
    let mut places = [0; 32];
    let mut lane = 0;
    while lane < 16 {
        places[lane] = lane as u32 / 4 * 5 + lane as u32 % 2 * 16;
        lane += 1;
    }
    places
};

/// Returns the scales of sixteen of them and the minima, by lanes.
///
/// # Safety
/// There must be sixteen blocks, and the set must run here.
#[inline(always)]
unsafe fn scales_of_twenty(blocks: *const u8) -> [__m256i; 2] {
    const FOUR: usize = 4 * 20;
    // SAFETY: as the caller promises.
    unsafe {
        let places = _mm512_loadu_si512(PAIRS.as_ptr().cast());
        let a = _mm512_loadu_si512(blocks.cast());
        let b = _mm512_loadu_si512(blocks.add(FOUR).cast());
        let c = _mm512_loadu_si512(blocks.add(2 * FOUR).cast());
        let d = _mm512_loadu_si512(blocks.add(3 * FOUR).cast());
        let first = _mm512_permutex2var_epi32(a, places, b);
        let second = _mm512_permutex2var_epi32(c, places, d);
        let pairs = _mm512_mask_blend_epi32(0xCCCC, first, second);
        [
            _mm512_cvtepi32_epi16(pairs),
            _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(pairs)),
        ]
    }
}

/// Returns the lower and the upper halves of bytes.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn nibbles(bytes: __m512i) -> [__m512i; 2] {
    // SAFETY: as the caller promises.
    unsafe {
        let low = _mm512_set1_epi8(15);
        let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), low);
        [_mm512_and_si512(bytes, low), upper]
    }
}

/// Adds the fifth bits of codes to their nibbles: those of a block are 32 bits, the first half for the lower nibbles.
///
/// # Safety
/// There must be four numbers, `apart` bytes from one another; the set must run here.
#[inline(always)]
unsafe fn fifths([lower, upper]: [__m512i; 2], bits: *const u8, apart: usize) -> [__m512i; 2] {
    // SAFETY: as the caller promises.
    unsafe {
        let block = |number: usize| bits.add(number * apart).cast::<i32>().read_unaligned();
        let bits = _mm_setr_epi32(block(0), block(1), block(2), block(3));
        let halves = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
        let halves = _mm_shuffle_epi8(bits, halves);
        let first = _mm_cvtsi128_si64(halves).cast_unsigned();
        let second = _mm_extract_epi64::<1>(halves).cast_unsigned();
        let fifth = _mm512_set1_epi8(16);
        [
            _mm512_mask_add_epi8(lower, first, lower, fifth),
            _mm512_mask_add_epi8(upper, second, upper, fifth),
        ]
    }
}

pub(super) struct Q8_0;

impl Q8_0 {
    /// 34 bytes: a scale, 32 codes.
    const FIRST: [u8; 64] = places(34, 2, 64);
    /// For vectors that begin at byte 8, so that the last ends with the last block.
    const SECOND: [u8; 64] = places(34, 18 - 8, 64);
}

impl Fours for Q8_0 {
    const FORMAT: Format = Format::Q8_0;
    const LINES: usize = 2;

    /// A sum of 8 products of at most 255·127.
    #[inline(always)]
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P] {
        // SAFETY: as the caller promises; four blocks are 136 bytes.
        unsafe {
            let flip = _mm512_set1_epi8(i8::MIN);
            let first = _mm512_xor_si512(gather(blocks, 64, &Self::FIRST), flip);
            let second = _mm512_xor_si512(gather(blocks.add(8), 64, &Self::SECOND), flip);
            both(first, second, lines)
        }
    }
}

pub(super) struct Q4_0;

impl Fours for Q4_0 {
    const FORMAT: Format = Format::Q4_0;
    const LINES: usize = 2;

    /// Value m is the lower half of byte m, value 16 + m the upper one.
    #[inline(always)]
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P] {
        // SAFETY: as the caller promises; four blocks are 72 bytes.
        unsafe {
            let [lower, upper] = nibbles(gather(blocks, 8, &EIGHTEEN));
            both(lower, upper, lines)
        }
    }
}

pub(super) struct Q4_1;

impl Q4_1 {
    const PLACES: [u8; 64] = places(20, 4, 16);
}

impl Fours for Q4_1 {
    const FORMAT: Format = Format::Q4_1;
    const LINES: usize = 2;

    #[inline(always)]
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P] {
        // SAFETY: as the caller promises; four blocks are 80 bytes.
        unsafe {
            let [lower, upper] = nibbles(gather(blocks, 16, &Self::PLACES));
            both(lower, upper, lines)
        }
    }
}

pub(super) struct Q5_0;

impl Q5_0 {
    const PLACES: [u8; 64] = places(22, 6, 24);
}

impl Fours for Q5_0 {
    const FORMAT: Format = Format::Q5_0;
    const LINES: usize = 2;

    #[inline(always)]
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P] {
        // SAFETY: as the caller promises; four blocks are 88 bytes.
        unsafe {
            let halves = nibbles(gather(blocks, 24, &Self::PLACES));
            let [lower, upper] = fifths(halves, blocks.add(2), 22);
            both(lower, upper, lines)
        }
    }
}

pub(super) struct Q5_1;

impl Q5_1 {
    const PLACES: [u8; 64] = places(24, 8, 32);
}

impl Fours for Q5_1 {
    const FORMAT: Format = Format::Q5_1;
    const LINES: usize = 2;

    #[inline(always)]
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P] {
        // SAFETY: as the caller promises; four blocks are 96 bytes.
        unsafe {
            let halves = nibbles(gather(blocks, 32, &Self::PLACES));
            let [lower, upper] = fifths(halves, blocks.add(4), 24);
            both(lower, upper, lines)
        }
    }
}

pub(super) struct Q2_0;

impl Fours for Q2_0 {
    const FORMAT: Format = Format::Q2_0;
    const LINES: usize = 4;

    /// Value 4·m + n is field n of byte m.
    #[inline(always)]
    fn lay(x: &[i8], lines: &mut [Line]) {
        for (block, x) in x.as_chunks::<64>().0.iter().enumerate() {
            for (m, x) in x.as_chunks::<4>().0.iter().enumerate() {
                for (line, &x) in lines.iter_mut().zip(x) {
                    line.0[16 * block + m] = x;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn dot<const P: usize>(blocks: *const u8, lines: [*const Line; P]) -> [__m512i; P] {
        // SAFETY: as the caller promises; four blocks are 72 bytes.
        unsafe {
            let codes = gather(blocks, 8, &EIGHTEEN);
            let mut sums = [_mm512_setzero_si512(); P];
            for (sum, lines) in sums.iter_mut().zip(lines) {
                *sum = tq2_0::dot(codes, load_lines::<4>(lines));
            }
            sums
        }
    }
}
