//! Encoding and decoding, written once for every codec.

use half::f16;

use super::codec::{Choice, Codec, Decoder};
use super::{BlockError, Encoded};
use crate::number::{Element, bits};

/// Encodes values block by block.
pub(super) fn encode<C, T, const LEN: usize, const BYTES: usize>(
    choice: Choice,
    values: &[T],
    out: &mut [u8],
) -> Result<Encoded, BlockError>
where
    C: Codec<LEN, BYTES>,
    T: Element,
{
    if !C::FORMAT.is_ternary() && !choice.is_reference() {
        return Err(BlockError::Rule);
    }
    let mut done = Encoded::default();
    let mut codes = [0; LEN];
    let blocks = blocks_mut::<_, BYTES>(out);
    for (index, (values, block)) in blocks_of::<T, LEN>(values).zip(blocks).enumerate() {
        let values = values.map(Element::to_f32);
        let largest = values.iter().fold(0, |max, &x| bits::magnitude(x).max(max));
        if largest >= bits::INFINITE {
            let bad = values.iter().position(|x| !x.is_finite());
            return Err(BlockError::NotFinite {
                index: index * LEN + bad.unwrap_or(0),
            });
        }
        let scales = match C::quantize(&values, choice, &mut codes) {
            Some(scales) => scales,
            None => {
                done.flushed += 1;
                C::quantize(&[0.0; LEN], choice, &mut codes).unwrap_or_default()
            }
        };
        let scale = f16::from_f32(scales.scale);
        if !scale.is_finite() {
            return Err(BlockError::ScaleOverflow { block: index });
        }
        if let Some(at) = C::FORMAT.min_offset() {
            let min = f16::from_f32(scales.min);
            if !min.is_finite() {
                return Err(BlockError::MinOverflow { block: index });
            }
            put(block, at, min);
        }
        C::pack(&codes, block);
        put(block, C::FORMAT.scale_offset(), scale);
        done.blocks += 1;
    }
    Ok(done)
}

/// Writes an f16 at an offset of a block.
fn put(block: &mut [u8], at: usize, value: f16) {
    if let Some(slot) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *slot = value.to_le_bytes();
    }
}

/// Factor and summand of a part's codes: finite scale and minimum, and the part's factors.
struct SubBlock {
    scale: f16,
    min: f16,
    factors: (i8, i8),
}

impl SubBlock {
    /// Returns both as f32, exact: 11 bits times 7. A minimum of 0 becomes −0 if ggml subtracts +0, so that −0 stays
    /// unchanged.
    #[inline(always)]
    fn floats(&self) -> (f32, f32) {
        let (scale, min) = self.factors;
        (
            self.scale.to_f32() * f32::from(scale),
            -(self.min.to_f32() * f32::from(-min)),
        )
    }

    /// Returns both in units of 2⁻²⁴. A finite f16 is an integer multiple of this unit, below 2⁴⁰.
    #[inline(always)]
    fn fixed(&self) -> (i64, i64) {
        let fixed = |f16: f16| (f16.to_f32() * 16_777_216.0) as i64;
        let (scale, min) = self.factors;
        (
            fixed(self.scale) * i64::from(scale),
            fixed(self.min) * i64::from(min),
        )
    }
}

/// Calls `visit` with the codes of each part of each block and their scale and minimum, in order.
fn for_each<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    mut visit: impl FnMut(&[i8], SubBlock),
) -> Result<(), BlockError>
where
    C: Decoder<LEN, BYTES>,
{
    let mut codes = [0; LEN];
    for (index, block) in blocks_of::<u8, BYTES>(bytes).enumerate() {
        let (scale, min) = (C::FORMAT.scale(block), C::FORMAT.min(block));
        if !scale.is_finite() {
            return Err(BlockError::ScaleNotFinite { block: index });
        }
        if C::FORMAT.min_offset().is_some() && !min.is_finite() {
            return Err(BlockError::MinNotFinite { block: index });
        }
        C::unpack(block, &mut codes);
        let part = |factors| SubBlock {
            scale,
            min,
            factors,
        };
        // Not in a loop of one iteration, which takes up to a tenth more.
        if const { C::FORMAT.parts() == 1 } {
            visit(&codes, part((1, 1)));
            continue;
        }
        let parts = codes.chunks_exact(const { C::FORMAT.part_len() });
        for (codes, number) in parts.zip(0..) {
            visit(codes, part(C::FORMAT.factors(block, number)));
        }
    }
    Ok(())
}

/// Writes `code · scale`, or `code · scale + minimum`, with an exact product: 5 bits times 11, or 4 times 17. (The
/// exception is Q6_K, 6 bits times 19. It has no minimum, so a value is rounded once.)
pub(super) fn decode<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError>
where
    C: Decoder<LEN, BYTES>,
{
    let mut parts = out.chunks_exact_mut(const { C::FORMAT.part_len() });
    for_each::<C, LEN, BYTES>(bytes, |codes, part| {
        let (scale, min) = part.floats();
        // Not `flatten`: its inner loop does not vectorize.
        let Some(out) = parts.next() else { return };
        // Without a minimum, adding 0 would turn −0 into +0.
        let min = C::FORMAT.min_offset().map(|_| min);
        for (y, &code) in out.iter_mut().zip(codes) {
            let product = f32::from(code) * scale;
            *y = min.map_or(product, |min| product + min);
        }
    })
}

/// Writes the codes; ignores the scales.
pub(super) fn codes<C, const LEN: usize, const BYTES: usize>(bytes: &[u8], out: &mut [i8])
where
    C: Decoder<LEN, BYTES>,
{
    for (block, codes) in blocks_of(bytes).zip(blocks_mut(out)) {
        C::unpack(block, codes);
    }
}

/// Returns the exact Σ over parts of scale · 2²⁴ · Σ code · x + minimum · 2²⁴ · Σ x.
///
/// A finite f16 times 2²⁴ is an integer below 2⁴⁰. A part's integer product is at most 256 · 2 · 128 = 2¹⁶ (two-bit
/// codes) or 32 · 128 · 128 = 2¹⁹ in magnitude. Its Σ x is at most 32 · 128 if there is a minimum. So one part's term
/// is below 2⁶⁰. In Q4_K both are multiplied by at most 63, for a product of at most 32 · 15 · 128 < 2¹⁶: below 2⁶² +
/// 2⁵⁸. In Q6_K a product of at most 16 · 32 · 128 = 2¹⁶ is multiplied by at most 2⁷: 2²³ times the largest f16,
/// which is less than 2⁴⁰, stays below 2⁶³. Terms add up in 64 bits. A sum that would wrap continues in 128 bits,
/// which hold 2⁶⁴ parts.
pub(super) fn dot<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    x: &[i8],
) -> Result<i128, BlockError>
where
    C: Decoder<LEN, BYTES>,
{
    let (mut wide, mut narrow) = (0i128, 0i64);
    let mut parts = x.chunks_exact(const { C::FORMAT.part_len() });
    for_each::<C, LEN, BYTES>(bytes, |codes, part| {
        let Some(x) = parts.next() else { return };
        let products = x
            .iter()
            .zip(codes)
            .map(|(&x, &code)| i32::from(x) * i32::from(code));
        let (scale, min) = part.fixed();
        let mut term = scale * i64::from(products.sum::<i32>());
        if C::FORMAT.min_offset().is_some() {
            let sum = x.iter().map(|&x| i32::from(x)).sum::<i32>();
            term += min * i64::from(sum);
        }
        match narrow.checked_add(term) {
            Some(sum) => narrow = sum,
            None => {
                wide += i128::from(narrow);
                narrow = term;
            }
        }
    })?;
    Ok(wide + i128::from(narrow))
}

/// Returns the whole blocks of a slice.
fn blocks_of<T, const N: usize>(slice: &[T]) -> impl Iterator<Item = &[T; N]> {
    slice.chunks_exact(N).filter_map(<[T]>::first_chunk)
}

/// Returns the whole blocks of a mutable slice.
fn blocks_mut<T, const N: usize>(slice: &mut [T]) -> impl Iterator<Item = &mut [T; N]> {
    slice.chunks_exact_mut(N).filter_map(<[T]>::first_chunk_mut)
}
