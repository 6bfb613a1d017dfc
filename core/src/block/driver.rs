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
    if !C::TERNARY && !choice.is_reference() {
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
        let scale = match C::quantize(&values, choice, &mut codes) {
            Some(scale) => scale,
            None => {
                done.flushed += 1;
                C::quantize(&[0.0; LEN], choice, &mut codes).unwrap_or(0.0)
            }
        };
        let narrow = f16::from_f32(scale);
        if !narrow.is_finite() {
            return Err(BlockError::ScaleOverflow { block: index });
        }
        C::pack(&codes, narrow, block);
        done.blocks += 1;
    }
    Ok(done)
}

/// Calls `visit` with each block's codes and finite scale, in order.
pub(super) fn for_each<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    mut visit: impl FnMut(&[i8; LEN], f16),
) -> Result<(), BlockError>
where
    C: Codec<LEN, BYTES>,
{
    let mut codes = [0; LEN];
    for (index, block) in blocks_of::<u8, BYTES>(bytes).enumerate() {
        let scale = C::scale(block);
        if !scale.is_finite() {
            return Err(BlockError::ScaleNotFinite { block: index });
        }
        C::unpack(block, &mut codes);
        visit(&codes, scale);
    }
    Ok(())
}

/// Writes `code · scale`.
pub(super) fn decode<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError>
where
    C: Codec<LEN, BYTES>,
{
    let mut blocks = blocks_mut::<_, LEN>(out);
    for_each::<C, LEN, BYTES>(bytes, |codes, scale| {
        let scale = scale.to_f32();
        // Not `flatten`: its inner loop does not vectorize.
        if let Some(out) = blocks.next() {
            for (y, &code) in out.iter_mut().zip(codes) {
                *y = f32::from(code) * scale;
            }
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

/// Writes each block's scale.
pub(super) fn scales<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError>
where
    C: Codec<LEN, BYTES>,
{
    for (index, (block, out)) in blocks_of(bytes).zip(out).enumerate() {
        let scale = C::scale(block);
        if !scale.is_finite() {
            return Err(BlockError::ScaleNotFinite { block: index });
        }
        *out = scale.to_f32();
    }
    Ok(())
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

/// The exact Σ over blocks of scale · 2²⁴ · Σ code · x.
///
/// A finite f16 times 2²⁴ is an integer below 2⁴⁰, and a block's integer product is at most
/// 256 · 2 · 128 = 2¹⁶ (two-bit codes) or 32 · 128 · 128 = 2¹⁹ in magnitude, so one block's term is below
/// 2⁵⁹. Terms add up in 64 bits; a sum that would wrap spills into 128, where 2⁶⁴ blocks fit.
pub(super) fn dot<C, const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    x: &[i8],
) -> Result<i128, BlockError>
where
    C: Codec<LEN, BYTES>,
{
    let (mut wide, mut narrow) = (0i128, 0i64);
    let mut blocks = blocks_of::<i8, LEN>(x);
    for_each::<C, LEN, BYTES>(bytes, |codes, scale| {
        let Some(x) = blocks.next() else { return };
        let products = x
            .iter()
            .zip(codes)
            .map(|(&x, &code)| i32::from(x) * i32::from(code));
        let term = (scale.to_f32() * 16_777_216.0) as i64 * i64::from(products.sum::<i32>());
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
