//! Encoding and decoding, written once for every codec.

use half::f16;

use super::codec::{Choice, Codec};
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

/// Writes an f16 at a byte of a block.
fn put(block: &mut [u8], at: usize, value: f16) {
    if let Some(slot) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *slot = value.to_le_bytes();
    }
}

/// Calls `visit` with each block's codes, finite scale and finite minimum, in order.
pub(super) fn for_each<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    mut visit: impl FnMut(&[i8; LEN], f16, f16),
) -> Result<(), BlockError>
where
    C: Codec<LEN, BYTES>,
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
        visit(&codes, scale, min);
    }
    Ok(())
}

/// Writes `code · scale`, or `code · scale + minimum`, whose product is exact: 5 bits by 11.
pub(super) fn decode<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError>
where
    C: Codec<LEN, BYTES>,
{
    let mut blocks = blocks_mut::<_, LEN>(out);
    for_each::<C, LEN, BYTES>(bytes, |codes, scale, min| {
        let scale = scale.to_f32();
        // Not `flatten`: its inner loop does not vectorize.
        let Some(out) = blocks.next() else { return };
        // Where there is no minimum, adding 0 would make −0 of it a +0.
        let min = C::FORMAT.min_offset().map(|_| min.to_f32());
        for (y, &code) in out.iter_mut().zip(codes) {
            let product = f32::from(code) * scale;
            *y = min.map_or(product, |min| product + min);
        }
    })
}

/// Writes the codes; scales are not looked at.
pub(super) fn codes<C, const LEN: usize, const BYTES: usize>(bytes: &[u8], out: &mut [i8])
where
    C: Codec<LEN, BYTES>,
{
    for (block, codes) in blocks_of(bytes).zip(blocks_mut(out)) {
        C::unpack(block, codes);
    }
}

/// Index of the first code +2.
pub(super) fn position_of_two<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
) -> Option<usize>
where
    C: Codec<LEN, BYTES>,
{
    let mut codes = [0; LEN];
    blocks_of(bytes).enumerate().find_map(|(index, block)| {
        C::unpack(block, &mut codes);
        let position = codes.iter().position(|&code| code > 1)?;
        Some(index * LEN + position)
    })
}

/// The exact Σ over blocks of scale · 2²⁴ · Σ code · x + minimum · 2²⁴ · Σ x.
///
/// A finite f16 times 2²⁴ is an integer below 2⁴⁰, and a block's integer product is at most
/// 256 · 2 · 128 = 2¹⁶ (two-bit codes) or 32 · 128 · 128 = 2¹⁹ in magnitude, its Σ x at most 32 · 128 where there is a minimum,
/// so one block's term is below 2⁶⁰. Terms add up in 64 bits; a sum that would wrap spills into 128, where 2⁶⁴ blocks fit.
pub(super) fn dot<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    x: &[i8],
) -> Result<i128, BlockError>
where
    C: Codec<LEN, BYTES>,
{
    let (mut wide, mut narrow) = (0i128, 0i64);
    let mut blocks = blocks_of::<i8, LEN>(x);
    for_each::<C, LEN, BYTES>(bytes, |codes, scale, min| {
        let Some(x) = blocks.next() else { return };
        let products = x
            .iter()
            .zip(codes)
            .map(|(&x, &code)| i32::from(x) * i32::from(code));
        let mut term = (scale.to_f32() * 16_777_216.0) as i64 * i64::from(products.sum::<i32>());
        if C::FORMAT.min_offset().is_some() {
            let sum = x.iter().map(|&x| i32::from(x)).sum::<i32>();
            term += (min.to_f32() * 16_777_216.0) as i64 * i64::from(sum);
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

/// Whole blocks of a slice.
fn blocks_of<T, const N: usize>(slice: &[T]) -> impl Iterator<Item = &[T; N]> {
    slice.chunks_exact(N).filter_map(<[T]>::first_chunk)
}

/// Whole blocks of a mutable slice.
fn blocks_mut<T, const N: usize>(slice: &mut [T]) -> impl Iterator<Item = &mut [T; N]> {
    slice.chunks_exact_mut(N).filter_map(<[T]>::first_chunk_mut)
}
