//! Rows of K-quants times 16-bit activations: 64 codes at a time are multiplied with both planes. `vpmaddubsw` adds
//! pairs of products, `vpdpwssd` multiplies these with their parts' factors.
//!
//! A pair is at most 2 · 63 · 127, which 16 bits hold. Both planes together, times the scale, are added in f64, where
//! the sums of weights are exact; see [`crate::simd::linear::halves`]. The sums of codes can be twice as large, but are
//! in lanes, each of which has a sixteenth of them, and the lanes are added as integers.

use std::arch::asm;
use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::{ask, load_lines};
use crate::simd::linear::{Activations, HalfRows, Line, LineRows, Start};

/// Values per block.
const LEN: usize = 256;
/// Vectors of its codes.
const STEPS: usize = 4;

/// How the blocks of a format are multiplied.
///
/// Only functions that are compiled for the set use these.
pub(super) trait Parts {
    const FORMAT: Format;
    /// True if the sums of a lane over a block fit 32 bits with both planes together.
    const FITS: bool;

    /// Brings a block's activations into the order of its codes.
    fn lay(x: &[i8; LEN], lines: &mut [Line]);

    /// Returns the codes, and the factors of pairs of them.
    ///
    /// # Safety
    /// There must be a block; the set must run here.
    unsafe fn codes(block: *const u8) -> [(__m512i, __m512i); STEPS];

    /// Adds what sums of activations over parts are multiplied by, given the block's scale.
    ///
    /// # Safety
    /// As for [`Parts::codes`].
    unsafe fn add_rest(totals: &mut [__m512d; 2], block: *const u8, scale: __m512d, sums: &Start);
}

/// Returns the kernel of a format.
pub(super) fn half_rows<B: Parts>() -> HalfRows {
    HalfRows::Lines(LineRows {
        prepare: prepare::<B>,
        rows: rows::<B>,
    })
}

/// Stores the lines of a block's high plane, then of its low one, and Σx of its parts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn prepare<B: Parts>([high, low]: [&[i8]; 2], activations: &mut Activations) {
    let blocks = high.len() / LEN;
    activations.len = high.len();
    activations.lines = vec![Line([0; 64]); blocks * 2 * STEPS];
    activations.start = vec![Start([0; 16]); blocks];
    let lines = activations.lines.chunks_exact_mut(2 * STEPS);
    let planes = high.as_chunks().0.iter().zip(low.as_chunks().0);
    for (((high, low), lines), start) in planes.zip(lines).zip(&mut activations.start) {
        let (first, second) = lines.split_at_mut(STEPS);
        B::lay(high, first);
        B::lay(low, second);
        let len = B::FORMAT.part_len();
        let parts = high.chunks_exact(len).zip(low.chunks_exact(len));
        for (sum, (high, low)) in start.0.iter_mut().zip(parts) {
            let of = |plane: &[i8]| plane.iter().map(|&x| i32::from(x)).sum::<i32>();
            *sum = 255 * of(high) + of(low);
        }
    }
}

/// Processes rows in place, two in turns.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn rows<B: Parts>(bytes: &[u8], x: &Activations, out: &mut [f64]) {
    let row_bytes = x.start.len() * B::FORMAT.bytes();
    assert!(bytes.len() == out.len() * row_bytes && x.lines.len() == 2 * STEPS * x.start.len());
    for first in (0..out.len()).step_by(2) {
        // The last row of an odd number is paired with itself.
        let numbers = [first, (first + 1).min(out.len() - 1)];
        let rows = [
            &bytes[numbers[0] * row_bytes..],
            &bytes[numbers[1] * row_bytes..],
        ];
        let mut totals = [[_mm512_setzero_pd(); 2]; 2];
        let lines = x.lines.as_chunks::<{ 2 * STEPS }>().0;
        for (block, (sums, lines)) in x.start.iter().zip(lines).enumerate() {
            let at = block * B::FORMAT.bytes();
            // Both rows' blocks are before those of the next two, of which the second row's come first here.
            ask(rows[1].as_ptr().wrapping_add(2 * at), 2 * B::FORMAT.bytes());
            for (totals, row) in totals.iter_mut().zip(rows) {
                // SAFETY: a block lies there, and as many lines.
                unsafe { add_block::<B>(totals, row.as_ptr().add(at), lines, sums) };
            }
        }
        for (number, totals) in numbers.into_iter().zip(totals) {
            out[number] = whole(totals);
        }
    }
}

/// Adds the products of a block.
///
/// # Safety
/// There must be a block; the set must run here.
#[inline(always)]
unsafe fn add_block<B: Parts>(
    totals: &mut [__m512d; 2],
    block: *const u8,
    lines: &[Line; 2 * STEPS],
    sums: &Start,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let high = load_lines::<STEPS>(lines.as_ptr());
        let low = load_lines::<STEPS>(lines.as_ptr().add(STEPS));
        let mut planes = [_mm512_setzero_si512(); 2];
        for (step, (codes, factors)) in B::codes(block).into_iter().enumerate() {
            for (sum, x) in planes.iter_mut().zip([high[step], low[step]]) {
                *sum = add_pairs(*sum, _mm512_maddubs_epi16(codes, x), factors);
            }
        }
        let scale = scale(block.add(B::FORMAT.scale_offset()));
        let [high, low] = planes;
        if B::FITS {
            let above = _mm512_sub_epi32(_mm512_slli_epi32::<8>(high), high);
            add(totals, _mm512_add_epi32(above, low), scale);
        } else {
            let above = _mm512_mul_pd(scale, _mm512_set1_pd(255.0));
            add(totals, high, above);
            add(totals, low, scale);
        }
        B::add_rest(totals, block, scale, sums);
    }
}

/// Returns the sum of lanes, which are whole numbers of 2⁻²⁴.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn whole(totals: [__m512d; 2]) -> f64 {
    const UNITS: f64 = 16_777_216.0;
    let mut all = _mm512_setzero_si512();
    for total in totals {
        let total = _mm512_mul_pd(total, _mm512_set1_pd(UNITS));
        all = _mm512_add_epi64(all, _mm512_cvttpd_epi64(total));
    }
    _mm512_reduce_add_epi64(all) as f64 / UNITS
}

/// Returns sum + a₀ · b₀ + a₁ · b₁, by lanes. Hidden from the compiler, which makes two instructions of it to shorten the
/// chain of sums; those are not what limits the loop.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_pairs(mut sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: an operation of registers; the set has it.
    unsafe {
        asm!("vpdpwssd {0}, {1}, {2}", inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b, options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Adds numbers times a scale.
#[inline]
#[target_feature(enable = "avx512f")]
fn add(totals: &mut [__m512d; 2], numbers: __m512i, scale: __m512d) {
    let low = _mm512_cvtepi32_pd(_mm512_castsi512_si256(numbers));
    let high = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(numbers));
    totals[0] = _mm512_fmadd_pd(low, scale, totals[0]);
    totals[1] = _mm512_fmadd_pd(high, scale, totals[1]);
}

/// Returns an f16 in all lanes.
///
/// # Safety
/// There must be one; the set must run here.
#[inline(always)]
unsafe fn scale(at: *const u8) -> __m512d {
    // SAFETY: as the caller promises.
    unsafe {
        let half = _mm_set1_epi16(at.cast::<i16>().read_unaligned());
        _mm512_cvtps_pd(_mm256_cvtph_ps(half))
    }
}

/// Returns the places of factors for pairs of codes, sixteen bits each: `parts` are those of the quarters.
const fn places(parts: [u16; 4]) -> [u16; 32] {
    let mut places = [0; 32];
    let mut pair = 0;
    while pair < 32 {
        places[pair] = parts[pair / 8];
        pair += 1;
    }
    places
}

/// Returns codes with the factors for pairs of them.
///
/// # Safety
/// The set must run here.
#[inline(always)]
unsafe fn with_factors(
    codes: [__m512i; STEPS],
    factors: __m512i,
    places: &[[u16; 32]; STEPS],
) -> [(__m512i, __m512i); STEPS] {
    let mut both = [(codes[0], factors); STEPS];
    for ((both, codes), places) in both.iter_mut().zip(codes).zip(places) {
        // SAFETY: as the caller promises; places fill a vector.
        let factors = unsafe {
            let places = _mm512_loadu_si512(places.as_ptr().cast());
            _mm512_permutexvar_epi16(places, factors)
        };
        *both = (codes, factors);
    }
    both
}

/// Two bytes of scale, two of minimum, twelve of factors, 128 of codes: 32 bytes are the lower nibbles of a part, and
/// the upper ones of the next.
pub(super) struct Q4K;

impl Q4K {
    const PLACES: [[u16; 32]; STEPS] = [
        places([0, 0, 2, 2]),
        places([1, 1, 3, 3]),
        places([4, 4, 6, 6]),
        places([5, 5, 7, 7]),
    ];

    /// Returns the factors of scales, or of minima, in bytes.
    ///
    /// # Safety
    /// There must be a block.
    #[inline(always)]
    unsafe fn factors(block: *const u8, is_min: bool) -> u64 {
        // SAFETY: as the caller promises.
        let word = |at: usize| unsafe { block.add(at).cast::<u32>().read_unaligned() };
        // Four six-bit factors per word: two bits of later ones are above the six of each, their other four in the last.
        let own = word(if is_min { 8 } else { 4 });
        let both = word(12) >> if is_min { 4 } else { 0 };
        let later = both & 0x0F0F_0F0F | (own >> 6 & 0x0303_0303) << 4;
        u64::from(own & 0x3F3F_3F3F) | u64::from(later) << 32
    }
}

impl Parts for Q4K {
    const FORMAT: Format = Format::Q4K;
    /// 255 · 4 · 2 · 2 · 15 · 127 · 63.
    const FITS: bool = true;

    #[inline(always)]
    fn lay(x: &[i8; LEN], lines: &mut [Line]) {
        for (lines, x) in lines.chunks_exact_mut(2).zip(x.as_chunks::<128>().0) {
            for (line, from) in lines.iter_mut().zip([0, 32]) {
                line.0[..32].copy_from_slice(&x[from..][..32]);
                line.0[32..].copy_from_slice(&x[64 + from..][..32]);
            }
        }
    }

    #[inline(always)]
    unsafe fn codes(block: *const u8) -> [(__m512i, __m512i); STEPS] {
        // SAFETY: as the caller promises.
        unsafe {
            let factors = Self::factors(block, false).cast_signed();
            let factors = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(factors));
            let factors = _mm512_castsi128_si512(factors);
            let low = _mm512_set1_epi8(15);
            let first = _mm512_loadu_si512(block.add(16).cast());
            let second = _mm512_loadu_si512(block.add(16 + 64).cast());
            let codes = [
                _mm512_and_si512(first, low),
                _mm512_and_si512(_mm512_srli_epi16::<4>(first), low),
                _mm512_and_si512(second, low),
                _mm512_and_si512(_mm512_srli_epi16::<4>(second), low),
            ];
            with_factors(codes, factors, &Self::PLACES)
        }
    }

    /// Minima are subtracted.
    #[inline(always)]
    unsafe fn add_rest(totals: &mut [__m512d; 2], block: *const u8, _: __m512d, sums: &Start) {
        // SAFETY: as the caller promises; sixteen sums lie there.
        unsafe {
            let factors = _mm_cvtsi64_si128(Self::factors(block, true).cast_signed());
            let sums = _mm256_load_si256(sums.0.as_ptr().cast());
            let products = _mm256_mullo_epi32(_mm256_cvtepu8_epi32(factors), sums);
            let products = _mm512_cvtepi32_pd(products);
            totals[1] = _mm512_fnmadd_pd(products, scale(block.add(2)), totals[1]);
        }
    }
}

/// 128 bytes of lower nibbles, 64 of upper pairs of bits, sixteen factors, a scale. Codes are larger by 32.
pub(super) struct Q6K;

impl Q6K {
    const PLACES: [[u16; 32]; STEPS] = [
        places([0, 1, 2, 3]),
        places([4, 5, 6, 7]),
        places([8, 9, 10, 11]),
        places([12, 13, 14, 15]),
    ];

    /// Returns the factors.
    ///
    /// # Safety
    /// There must be a block.
    #[inline(always)]
    unsafe fn factors(block: *const u8) -> __m128i {
        // SAFETY: as the caller promises.
        unsafe { _mm_loadu_si128(block.add(192).cast()) }
    }
}

impl Parts for Q6K {
    const FORMAT: Format = Format::Q6K;
    const FITS: bool = false;

    #[inline(always)]
    fn lay(x: &[i8; LEN], lines: &mut [Line]) {
        for (line, x) in lines.iter_mut().zip(x.as_chunks().0) {
            line.0 = *x;
        }
    }

    #[inline(always)]
    unsafe fn codes(block: *const u8) -> [(__m512i, __m512i); STEPS] {
        // SAFETY: as the caller promises.
        unsafe {
            let factors = _mm256_cvtepi8_epi16(Self::factors(block));
            let factors = _mm512_castsi256_si512(factors);
            let (low, above) = (_mm512_set1_epi8(15), _mm512_set1_epi8(48));
            // By how many bits the upper pairs of 32 codes are moved, and those of the next 32.
            let left = _mm512_inserti64x4::<1>(_mm512_set1_epi16(4), _mm256_set1_epi16(2));
            let right = _mm512_inserti64x4::<1>(_mm512_setzero_si512(), _mm256_set1_epi16(2));
            let mut codes = [_mm512_setzero_si512(); STEPS];
            for half in 0..2 {
                let nibbles = _mm512_loadu_si512(block.add(64 * half).cast());
                let pairs = _mm256_loadu_si256(block.add(128 + 32 * half).cast());
                let pairs = _mm512_broadcast_i64x4(pairs);
                let first = _mm512_and_si512(_mm512_sllv_epi16(pairs, left), above);
                let second = _mm512_and_si512(_mm512_srlv_epi16(pairs, right), above);
                let upper = _mm512_srli_epi16::<4>(nibbles);
                // (x & low) | pairs.
                codes[2 * half] = _mm512_ternarylogic_epi32::<0xEA>(nibbles, low, first);
                codes[2 * half + 1] = _mm512_ternarylogic_epi32::<0xEA>(upper, low, second);
            }
            with_factors(codes, factors, &Self::PLACES)
        }
    }

    #[inline(always)]
    unsafe fn add_rest(totals: &mut [__m512d; 2], block: *const u8, scale: __m512d, sums: &Start) {
        // SAFETY: as the caller promises; sixteen sums lie there.
        unsafe {
            let factors = _mm512_cvtepi8_epi32(Self::factors(block));
            let sums = _mm512_load_si512(sums.0.as_ptr().cast());
            let less = _mm512_mul_pd(scale, _mm512_set1_pd(-32.0));
            add(totals, _mm512_mullo_epi32(sums, factors), less);
        }
    }
}
