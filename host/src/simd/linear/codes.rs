//! Weights as codes without a sign, a byte each: what tiles are packed from.
//!
//! A code is the weight plus the layout's [`offset`]. The loops are for [`Tiles`](super::Tiles)' functions to compile for their set.

use tercet_core::block::Format;
use tercet_core::linear::Layout;

/// What codes without a sign are larger by than weights.
pub(in crate::simd) const fn offset(layout: Layout) -> i32 {
    match layout {
        Layout::Block(format) => offset_of(format),
        Layout::TernaryLanes | Layout::FiveTrits => 1,
        Layout::Int4 => 8,
        _ => 128,
    }
}

/// [`offset`] of blocks.
pub(in crate::simd) const fn offset_of(format: Format) -> i32 {
    match format {
        Format::Tq1_0 | Format::Tq2_0 | Format::Q2_0 => 1,
        Format::Q4_0 => 8,
        Format::Q8_0 => 128,
    }
}

/// Writes the codes of a group of rows, which lie in `bytes`, row `r` at `out[r · stride]`. `stride` is at least `cols`.
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
        Layout::Block(format) => blocks(format, bytes, out),
        // Pairs have weights that are no byte; a layout that this crate does not know has no tiles.
        _ => {}
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

#[inline(always)]
fn flip(bytes: &[u8], out: &mut [u8]) {
    for (out, &byte) in out.iter_mut().zip(bytes) {
        *out = byte ^ 0x80;
    }
}

/// A column is two bytes, two rows each; the fourth row's weight is in two's complement.
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

#[inline(always)]
fn blocks(format: Format, bytes: &[u8], out: &mut [u8]) {
    match format {
        Format::Tq1_0 => each::<256, 54>(bytes, out, |block, codes| {
            digits::<32>(&block[..32], &mut codes[..160]);
            digits::<16>(&block[32..48], &mut codes[160..240]);
            digits::<4>(&block[48..52], &mut codes[240..]);
        }),
        Format::Tq2_0 => each::<256, 66>(bytes, out, |block, codes| {
            for (half, codes) in codes.as_chunks_mut::<128>().0.iter_mut().enumerate() {
                for m in 0..32 {
                    let byte = block[32 * half + m];
                    for field in 0..4 {
                        codes[32 * field + m] = (byte >> (2 * field)) & 3;
                    }
                }
            }
        }),
        Format::Q2_0 => each::<64, 18>(bytes, out, |block, codes| {
            for (codes, &byte) in codes.as_chunks_mut::<4>().0.iter_mut().zip(&block[2..]) {
                // Four fields to four bytes: 4 bits apart first, then 8.
                let nibbles = (u32::from(byte) | u32::from(byte) << 12) & 0x000F_000F;
                let fields = (nibbles | nibbles << 6) & 0x0303_0303;
                *codes = fields.to_le_bytes();
            }
        }),
        Format::Q8_0 => each::<32, 34>(bytes, out, |block, codes| flip(&block[2..], codes)),
        Format::Q4_0 => each::<32, 18>(bytes, out, |block, codes| {
            for m in 0..16 {
                codes[m] = block[2 + m] & 15;
                codes[16 + m] = block[2 + m] >> 4;
            }
        }),
    }
}

#[inline(always)]
fn each<const LEN: usize, const BYTES: usize>(
    bytes: &[u8],
    out: &mut [u8],
    unpack: impl Fn(&[u8; BYTES], &mut [u8; LEN]),
) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (block, codes) in blocks.iter().zip(out.as_chunks_mut::<LEN>().0) {
        unpack(block, codes);
    }
}

/// The digits of bytes that hold five of `STRIDE` columns, or four.
#[inline(always)]
fn digits<const STRIDE: usize>(bytes: &[u8], codes: &mut [u8]) {
    for (codes, power) in codes.chunks_exact_mut(STRIDE).zip([1u8, 3, 9, 27, 81]) {
        for (code, &byte) in codes.iter_mut().zip(bytes) {
            *code = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
        }
    }
}

/// Where the scale lies in a block.
pub(in crate::simd) const fn scale_at(format: Format) -> usize {
    match format {
        Format::Tq1_0 | Format::Tq2_0 => format.bytes() - 2,
        Format::Q2_0 | Format::Q8_0 | Format::Q4_0 => 0,
    }
}

/// The scale of a block of a format times 2²⁴, an integer.
#[inline]
pub(in crate::simd) fn scale(format: Format, block: &[u8]) -> i64 {
    let at = scale_at(format);
    let bits = u16::from_le_bytes([block[at], block[at + 1]]);
    let mantissa = i64::from(bits & 0x3FF);
    let magnitude = match (bits >> 10) & 31 {
        // Subnormal.
        0 => mantissa,
        // A matrix has refused 31.
        exponent => (mantissa | 0x400) << (exponent - 1),
    };
    if bits >> 15 == 0 {
        magnitude
    } else {
        -magnitude
    }
}
