//! Blocks of several parts, the K-quants, with loops that are written once over a set's vectors and products;
//! [`super::by_loops`] makes the set's functions.

use tercet_core::block::Format;

use super::codes::{Codes, MOST_PARTS, fixed, offset_of};
use super::lanes::Lanes;
use crate::simd::linear::{Activations, Line, Start};
use crate::simd::search::dots::DotProducts;

/// Values per block, in each of these formats.
const LEN: usize = 256;

/// Parts whose products are computed at once.
const FOUR: usize = 4;

/// As [`super::table::Decode`].
#[inline(always)]
pub(in crate::simd) fn decode<V: Lanes, C: Codes<LEN, BYTES>, const BYTES: usize>(
    set: V,
    bytes: &[u8],
    out: &mut [f32],
) -> usize {
    let len = const { C::FORMAT.part_len() };
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (index, (block, out)) in blocks.zip(out.as_chunks_mut::<LEN>().0).enumerate() {
        let (scale, min) = (C::FORMAT.scale(block), C::FORMAT.min(block));
        if !scale.is_finite() || !min.is_finite() {
            return index;
        }
        let (scale, min) = (set.wide(scale), set.wide(min));
        let mut codes = [0; LEN];
        C::unpack(block, &mut codes);
        let (of_scale, of_min) = C::factors(block);
        let parts = out.chunks_exact_mut(len).zip(codes.chunks_exact(len));
        for (part, (out, codes)) in parts.enumerate() {
            let (of_scale, of_min) = (of_scale[part], of_min[part]);
            let (scale, less) = (scale * f32::from(of_scale), min * f32::from(-of_min));
            for (y, &code) in out.iter_mut().zip(codes) {
                *y = (i32::from(code) - offset_of(C::FORMAT)) as f32 * scale;
                if C::FORMAT.min_offset().is_some() {
                    *y -= less;
                }
            }
        }
    }
    bytes.len() / BYTES
}

/// Returns the sums of a block's activations over its parts.
#[inline(always)]
fn sums(format: Format, x: &[i8; LEN]) -> [i32; MOST_PARTS] {
    let mut sums = [0; MOST_PARTS];
    for (sum, x) in sums.iter_mut().zip(x.chunks_exact(format.part_len())) {
        *sum = x.iter().map(|&x| i32::from(x)).sum();
    }
    sums
}

/// Returns Σ factor · Σ weight · x over a block's parts, each of which is at most 2⁷ · 2¹⁶ in magnitude, and Σ factor ·
/// Σ x.
///
/// The arguments are a block, its activations, and the sums of these over its parts.
#[inline(always)]
pub(in crate::simd) fn products<S: DotProducts, C: Codes<LEN, BYTES>, const BYTES: usize>(
    set: S,
    block: &[u8; BYTES],
    x: &[i8; LEN],
    sums: &[i32; MOST_PARTS],
) -> (i32, i32) {
    let len = const { C::FORMAT.part_len() };
    let mut codes = [0; LEN];
    C::unpack(block, &mut codes);
    let above = S::ABOVE + offset_of(C::FORMAT);
    let factors = C::factors(block);
    let (mut of_scale, mut of_min) = (0, 0);
    for four in 0..const { C::FORMAT.parts() / FOUR } {
        let mut found = [set.start(0); FOUR];
        for (found, part) in found.iter_mut().zip(FOUR * four..) {
            // Products of codes that are too large begin with the excess subtracted.
            *found = set.start(-above * sums[part]);
            for at in (0..len).step_by(S::STEP.min(len)) {
                let (from, left) = (part * len + at, len - at);
                // SAFETY: a step, or what is left of a part, lies there.
                *found = unsafe {
                    let codes = set.load(codes.as_ptr().add(from).cast(), left);
                    set.add_products(*found, codes, set.load(x.as_ptr().add(from), left))
                };
            }
        }
        for (dot, part) in set.totals(found).into_iter().zip(FOUR * four..) {
            of_scale += i32::from(factors.0[part]) * dot;
            of_min += i32::from(factors.1[part]) * sums[part];
        }
    }
    (of_scale, of_min)
}

/// As [`super::table::Dot`], with the [`products`] of a set.
#[inline(always)]
pub(in crate::simd) fn dot<C: Codes<LEN, BYTES>, const BYTES: usize>(
    bytes: &[u8],
    x: &[i8],
    products: impl Fn(&[u8; BYTES], &[i8; LEN], &[i32; MOST_PARTS]) -> (i32, i32),
) -> Option<i128> {
    let mut total = 0;
    let blocks = bytes.as_chunks::<BYTES>().0.iter();
    for (block, x) in blocks.zip(x.as_chunks::<LEN>().0) {
        let (scale, min) = (C::FORMAT.scale(block), C::FORMAT.min(block));
        if !scale.is_finite() || !min.is_finite() {
            return None;
        }
        let (dot, sum) = products(block, x, &sums(C::FORMAT, x));
        // Below 2⁴⁰ and 2²⁷ in magnitude.
        total += i128::from(fixed(scale)) * i128::from(dot);
        total += i128::from(fixed(min)) * i128::from(sum);
    }
    Some(total)
}

/// Stores the activations in order, and their sums over the parts of each block.
#[inline(always)]
pub(in crate::simd) fn prepare<C: Codes<LEN, BYTES>, const BYTES: usize>(
    x: &[i8],
    activations: &mut Activations,
) {
    activations.set(x);
    let blocks = x.as_chunks().0.iter();
    activations.start = blocks.map(|x| Start(sums(C::FORMAT, x))).collect();
}

/// Computes the sums of rows of blocks, with the [`products`] of a set; see [`crate::simd::linear::WideRows`].
#[inline(always)]
pub(in crate::simd) fn rows<C: Codes<LEN, BYTES>, const BYTES: usize>(
    bytes: &[u8],
    x: &Activations,
    out: &mut [i64],
    products: impl Fn(&[u8; BYTES], &[i8; LEN], &[i32; MOST_PARTS]) -> (i32, i32),
) {
    let lines = x.lines.as_chunks::<{ LEN / size_of::<Line>() }>().0;
    for (row, out) in bytes.chunks_exact(x.len / LEN * BYTES).zip(out) {
        let mut total = 0;
        for ((block, x), sums) in row.as_chunks::<BYTES>().0.iter().zip(lines).zip(&x.start) {
            // SAFETY: a line is 64 activations and nothing else, so as many lines are those of a block.
            let x = unsafe { &*x.as_ptr().cast() };
            let (dot, sum) = products(block, x, &sums.0);
            // A matrix refuses rows whose sums could leave 62 bits.
            total += fixed(C::FORMAT.scale(block)) * i64::from(dot);
            total += fixed(C::FORMAT.min(block)) * i64::from(sum);
        }
        *out = total;
    }
}
