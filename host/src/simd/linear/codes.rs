//! Weights as unsigned codes, one byte each, from which tiles are packed.
//!
//! A code is the weight plus the layout's [`offset`]. The loops are compiled for a set in the functions of
//! [`Tiles`](super::Tiles).

use tercet_core::linear::Layout;

use crate::simd::blocks::codes::{digits, each, flip, offset_of, with_codes};

/// Returns by how much unsigned codes are larger than weights.
pub(in crate::simd) const fn offset(layout: Layout) -> i32 {
    match layout {
        Layout::Block(format) => offset_of(format),
        Layout::TernaryLanes | Layout::FiveTrits => 1,
        Layout::Int4 => 8,
        Layout::Int8 | Layout::Int8Pairs => 128,
    }
}

/// Writes the codes of a group of rows in `bytes`, with row `r` at `out[r · stride]`. `stride` is at least `cols`.
#[inline(always)]
pub(in crate::simd) fn unpack(
    layout: Layout,
    bytes: &[u8],
    cols: usize,
    out: &mut [u8],
    stride: usize,
) {
    match layout {
        Layout::Int8 => flip(bytes, out),
        Layout::Int4 => int4(bytes, cols, out, stride),
        Layout::TernaryLanes => rows_of::<8>(out, stride, cols, |row, col| lane(bytes, row, col)),
        Layout::FiveTrits => {
            for (group, out) in bytes
                .as_chunks::<12>()
                .0
                .iter()
                .zip(out[..cols].chunks_mut(60))
            {
                let mut codes = [0; 60];
                digits::<12>(group, &mut codes);
                out.copy_from_slice(&codes[..out.len()]);
            }
        }
        Layout::Block(format) => with_codes!(format, each(bytes, out)),
        // Pairs can have weights that fit no byte, and so have no tiles.
        Layout::Int8Pairs => {}
    }
}

#[inline(always)]
fn rows_of<const ROWS: usize>(
    out: &mut [u8],
    stride: usize,
    cols: usize,
    code: impl Fn(usize, usize) -> u8,
) {
    for (row, out) in out.chunks_mut(stride).take(ROWS).enumerate() {
        for (col, out) in out[..cols].iter_mut().enumerate() {
            *out = code(row, col);
        }
    }
}

/// A column has two bytes of two rows each; the fourth row's weight is in two's complement.
#[inline(always)]
fn int4(bytes: &[u8], cols: usize, out: &mut [u8], stride: usize) {
    for (row, out) in out.chunks_mut(stride).take(4).enumerate() {
        let flip = if row == 3 { 8 } else { 0 };
        for (&column, out) in bytes.as_chunks::<2>().0.iter().zip(&mut out[..cols]) {
            *out = ((u16::from_le_bytes(column) >> (4 * row)) & 15) as u8 ^ flip;
        }
    }
}

#[inline(always)]
fn lane(bytes: &[u8], row: usize, col: usize) -> u8 {
    let (word, _) = bytes[col / 2 * 4..]
        .split_first_chunk()
        .unwrap_or((&[0; 4], &[]));
    let lane = u32::from_le_bytes(*word).rotate_right((row / 2 * 4) as u32) >> (16 * (col % 2));
    match row % 2 {
        0 => lane as u8 & 3,
        // −1, 0 and 1 in two's complement.
        _ => (((lane >> 14) & 3) as u8 ^ 2).wrapping_sub(1),
    }
}
