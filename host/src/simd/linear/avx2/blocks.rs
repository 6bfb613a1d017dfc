//! Rows of GGUF blocks: eight blocks at a time, whose sums are one vector that is multiplied with the eight scales.
//!
//! A scale of f16 times 2²⁴ is m·2ᵉ, |m| < 2¹¹ and e < 30. A block's sum is below 2¹⁹ in magnitude, so its product with
//! m fits 32 bits, and is widened and shifted by e: exact, in integers. A matrix refuses rows whose sums could leave 62
//! bits.

use std::arch::x86_64::*;

use tercet_core::block::Format;

use super::sums::fold_four;
use crate::simd::blocks::codes;
use crate::simd::linear::{Activations, Line, Start};
use crate::simd::stores::Ahead;

/// How the blocks of a format are multiplied.
///
/// Only [`rows`], which has the set, uses these functions.
pub(super) trait Blocks {
    /// The format.
    const FORMAT: Format;
    /// Lines of activations for two blocks.
    const LINES: usize;
    /// Offset of codes over weights.
    const OFFSET: i32 = codes::offset_of(Self::FORMAT);

    /// Orders the activations of two blocks.
    fn prepare(x: &[i8], lines: &mut [i8]);

    /// Returns Σ code · x of two blocks, the first in the lower four lanes.
    ///
    /// # Safety
    /// There must be the bytes of two blocks, and [`Self::LINES`] lines.
    unsafe fn two(blocks: *const u8, lines: *const Line) -> __m256i;
}

/// Blocks that are multiplied before their scales are.
const EIGHT: usize = 8;

/// The block of each lane.
const ORDER: [usize; EIGHT] = [0, 2, 4, 6, 1, 3, 5, 7];

/// Stores lines for whole eights of blocks, padded with zeros; and offset · Σx of each block, by lanes.
pub(super) fn prepare<B: Blocks>(x: &[i8], activations: &mut Activations) {
    let len = B::FORMAT.len();
    let eights = x.len().div_ceil(EIGHT * len);
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); eights * 4 * B::LINES];
    activations.start = vec![Start([0; 16]); eights];
    let lines = activations.lines.chunks_exact_mut(B::LINES);
    for (x, lines) in x.chunks(2 * len).zip(lines) {
        let mut two = [0; 2 * Format::MAX_LEN];
        two[..x.len()].copy_from_slice(x);
        let mut flat = [0; 10 * 64];
        B::prepare(&two[..2 * len], &mut flat);
        for (line, flat) in lines.iter_mut().zip(flat.as_chunks().0) {
            *line = Line(*flat);
        }
    }
    let starts = activations.start.iter_mut().zip(x.chunks(EIGHT * len));
    for (start, x) in starts {
        for (start, block) in start.0.iter_mut().zip(ORDER) {
            let x = x.get(block * len..).unwrap_or_default().iter().take(len);
            *start = B::OFFSET * x.map(|&x| i32::from(x)).sum::<i32>();
        }
    }
}

/// Maximum bytes of eight blocks.
const EIGHT_BYTES: usize = EIGHT * 66;

/// Computes the sums of rows that are stored one after another.
#[inline(always)]
pub(super) fn rows<B: Blocks>(bytes: &[u8], x: &Activations, out: &mut [i64]) {
    let block = B::FORMAT.bytes();
    let blocks = x.len / B::FORMAT.len();
    let row_bytes = blocks * block;
    let eights = blocks.div_ceil(EIGHT);
    assert!(bytes.len() == out.len() * row_bytes);
    assert!(x.lines.len() == eights * 4 * B::LINES && x.start.len() == eights);
    // If a row ends between eights, the remaining blocks are processed in pairs. An extra block belongs to the next
    // row: its activations are 0, so its content does not matter. The last row has no row after it.
    let rest = blocks % EIGHT;
    let pairs = rest.div_ceil(2);
    let mut last = [0; EIGHT_BYTES];
    let rest_bytes = (rest * block).min(bytes.len());
    last[..rest_bytes].copy_from_slice(&bytes[bytes.len() - rest_bytes..]);
    let count = out.len();
    let rows = bytes.chunks_exact(row_bytes).zip(out);
    for (number, (row, out)) in rows.enumerate() {
        // SAFETY: the caller has the set. Eight blocks lie in each part, so many pairs of them in the rest and in the
        // copy, and activations for as many at each `at`.
        unsafe {
            let mut sum = _mm256_setzero_si256();
            for (at, part) in row.chunks_exact(EIGHT * block).enumerate() {
                Ahead::WEIGHTS.ask_step(part);
                let terms = eight::<B, true>(part.as_ptr(), x, at, EIGHT / 2);
                sum = _mm256_add_epi64(sum, terms);
            }
            if rest > 0 {
                let from = match number + 1 == count {
                    true => last.as_ptr(),
                    false => bytes.as_ptr().add((number + 1) * row_bytes - rest * block),
                };
                let terms = eight::<B, false>(from, x, eights - 1, pairs);
                sum = _mm256_add_epi64(sum, terms);
            }
            let two = _mm_add_epi64(
                _mm256_castsi256_si128(sum),
                _mm256_extracti128_si256::<1>(sum),
            );
            *out = _mm_cvtsi128_si64(two) + _mm_extract_epi64::<1>(two);
        }
    }
}

/// Returns dot · d · 2²⁴ of eight blocks, or of the first `pairs` pairs of them, in four sums.
///
/// # Safety
/// There must be so many blocks, and the activations of the eight `at`, with zeros for those that a row has not; the
/// set must run here.
#[inline(always)]
unsafe fn eight<B: Blocks, const ALL: bool>(
    blocks: *const u8,
    x: &Activations,
    at: usize,
    pairs: usize,
) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe {
        let lines = x.lines.as_ptr().add(at * 4 * B::LINES);
        let twos = [
            two::<B, ALL>(blocks, lines, 0, pairs),
            two::<B, ALL>(blocks, lines, 1, pairs),
            two::<B, ALL>(blocks, lines, 2, pairs),
            two::<B, ALL>(blocks, lines, 3, pairs),
        ];
        let less = _mm256_load_si256(x.start.as_ptr().add(at).cast());
        let dots = _mm256_sub_epi32(fold_four(twos), less);
        scaled(dots, scales::<B, ALL>(blocks, 2 * pairs))
    }
}

/// Returns Σ code · x of a pair of blocks, and 0 for pairs beyond `pairs` if not all exist. This is no closure: one
/// that is called in several places is not compiled for the set.
///
/// # Safety
/// As [`eight`]'s.
#[inline(always)]
unsafe fn two<B: Blocks, const ALL: bool>(
    blocks: *const u8,
    lines: *const Line,
    number: usize,
    pairs: usize,
) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe {
        match ALL || number < pairs {
            true => B::two(
                blocks.add(number * 2 * B::FORMAT.bytes()),
                lines.add(number * B::LINES),
            ),
            false => _mm256_setzero_si256(),
        }
    }
}

/// Returns the scales of eight blocks, by lanes, 0 from the block `count` on if not all exist. They are combined in
/// general registers, because the vector ports are already busy.
///
/// # Safety
/// There must be so many blocks; the set must run here.
#[inline(always)]
unsafe fn scales<B: Blocks, const ALL: bool>(blocks: *const u8, count: usize) -> __m128i {
    let scale = |lane: usize| {
        if !ALL && ORDER[lane] >= count {
            return 0;
        }
        let at = ORDER[lane] * B::FORMAT.bytes() + B::FORMAT.scale_offset();
        // SAFETY: as the caller promises.
        let scale = unsafe { blocks.add(at).cast::<u16>().read_unaligned() };
        i64::from(scale) << (16 * (lane % 4))
    };
    let four = |first| scale(first) | scale(first + 1) | scale(first + 2) | scale(first + 3);
    // SAFETY: as the caller promises.
    unsafe { _mm_set_epi64x(four(4), four(0)) }
}

/// Returns dot · d · 2²⁴; see the module.
#[inline]
#[target_feature(enable = "avx2")]
fn scaled(dots: __m256i, scales: __m128i) -> __m256i {
    let bits = _mm256_cvtepu16_epi32(scales);
    let exponents = _mm256_and_si256(_mm256_srli_epi32::<10>(bits), _mm256_set1_epi32(31));
    let normal = _mm256_cmpgt_epi32(exponents, _mm256_setzero_si256());
    let mantissas = _mm256_or_si256(
        _mm256_and_si256(bits, _mm256_set1_epi32(0x3FF)),
        _mm256_and_si256(normal, _mm256_set1_epi32(0x400)),
    );
    // The exponent less 1, or 0 for a subnormal.
    let shifts = _mm256_add_epi32(exponents, normal);
    // Not 0, with the scale's sign.
    let signs = _mm256_or_si256(_mm256_slli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let products = _mm256_mullo_epi32(_mm256_sign_epi32(dots, signs), mantissas);
    let low = _mm256_sllv_epi64(
        _mm256_cvtepi32_epi64(_mm256_castsi256_si128(products)),
        _mm256_cvtepu32_epi64(_mm256_castsi256_si128(shifts)),
    );
    let high = _mm256_sllv_epi64(
        _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(products)),
        _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(shifts)),
    );
    _mm256_add_epi64(low, high)
}

/// Loads sixteen bytes from each of two addresses.
///
/// # Safety
/// They must lie there, and the set must run here.
#[inline(always)]
pub(super) unsafe fn load_two(first: *const u8, second: *const u8) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe { _mm256_loadu2_m128i(second.cast(), first.cast()) }
}

/// Loads half a line.
///
/// # Safety
/// It must lie there, and the set must run here.
#[inline(always)]
pub(super) unsafe fn load_half(lines: *const Line, half: usize) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe { _mm256_load_si256(lines.cast::<__m256i>().add(half)) }
}

/// Defines the kernels of a format, compiled for the set.
macro_rules! kernels {
    ($blocks:ty) => {
        /// Stores activations in the order of the blocks' bytes; see [`blocks`](super::blocks).
        pub(in crate::simd) fn prepare(
            x: &[i8],
            activations: &mut crate::simd::linear::Activations,
        ) {
            super::blocks::prepare::<$blocks>(x, activations);
        }

        /// Processes rows in place; see [`blocks`](super::blocks).
        #[target_feature(enable = "avx2")]
        pub(in crate::simd) fn rows(
            bytes: &[u8],
            x: &crate::simd::linear::Activations,
            out: &mut [i64],
        ) {
            super::blocks::rows::<$blocks>(bytes, x, out);
        }
    };
}
pub(super) use kernels;
