//! Weights as the kernels read them: rows of 2, 4 or 8 bits per weight, from any layout; blocks of several parts are
//! unchanged.

use rayon::prelude::*;
use tercet_core::block::{self, Format};
use tercet_core::linear::{Layout, LinearError, Matrix};

use crate::engine::team;

/// Bytes that a lane loads at once; row lengths are multiples of it.
pub(super) const CHUNK: usize = 16;

/// Storage of rows: as `Packed` in `kernels/include/tercet/linear.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    /// Bits per weight: 2, 4 or 8.
    pub(super) bits: usize,
    /// Subtracted from a code before it is packed: not 0 only if blocks have minima, which compensate for it.
    pub(super) origin: i32,
    /// Columns of a block with a scale; `None` if there are no blocks, or blocks of parts.
    pub(super) block: Option<usize>,
    /// The format of blocks of several parts, which are not packed.
    pub(super) parts: Option<Format>,
    pub(super) cols: usize,
}

impl Packing {
    pub(super) const fn of(layout: Layout, cols: usize) -> Self {
        let (lowest, highest) = layout.codes();
        // The fewest bits that hold the codes.
        let (bits, offset) = match highest as i32 - lowest as i32 {
            0..=3 => (2, 1),
            4..=15 => (4, 8),
            _ => (8, 0),
        };
        Self {
            bits,
            origin: if bits == 8 { 0 } else { lowest as i32 + offset },
            block: match layout {
                Layout::Block(format) if format.parts() == 1 => Some(format.len()),
                _ => None,
            },
            parts: match layout {
                Layout::Block(format) if format.parts() > 1 => Some(format),
                _ => None,
            },
            cols,
        }
    }

    /// Returns the columns in 16 bytes.
    pub(super) const fn chunk_cols(&self) -> usize {
        CHUNK * 8 / self.bits
    }

    /// Returns the columns of a row including its padding, for which there are activations of 0.
    pub(super) const fn padded(&self) -> usize {
        self.cols.next_multiple_of(self.chunk_cols())
    }

    /// Returns the bytes of a row: a multiple of 16, except for blocks of parts.
    pub(super) const fn row_bytes(&self) -> usize {
        match self.parts {
            Some(format) => self.cols / format.len() * format.bytes(),
            None => self.padded() * self.bits / 8,
        }
    }

    /// Returns the blocks of a row, 0 if there are none.
    pub(super) const fn blocks(&self) -> usize {
        match self.block {
            Some(block) => self.cols / block,
            None => 0,
        }
    }

    /// Returns the value that is added to a weight so that the packed value is not negative, less the origin.
    const fn offset(&self) -> i8 {
        let offset = match self.bits {
            2 => 1,
            4 => 8,
            _ => 0,
        };
        // At least the lowest code of a format: within 4 bits.
        (offset - self.origin) as i8
    }

    /// Writes a row of codes into its bytes, with 0 as padding.
    fn pack(&self, codes: &[i8], out: &mut [u8]) {
        match self.bits {
            2 => pack_words::<4>(codes, self.offset(), out),
            4 => pack_words::<2>(codes, self.offset(), out),
            _ => pack_words::<1>(codes, self.offset(), out),
        }
    }
}

/// Packs words of so many quads of codes, after adding the offset: byte b of a word has codes b, 4 + b, 8 + b…, the
/// first in its lowest bits.
fn pack_words<const QUADS: usize>(codes: &[i8], offset: i8, out: &mut [u8]) {
    let word = |quads: &[[i8; 4]; QUADS]| {
        let mut word = [0; 4];
        for (index, quad) in quads.iter().enumerate() {
            for (byte, &code) in word.iter_mut().zip(quad) {
                *byte |= code.wrapping_add(offset).cast_unsigned() << (8 / QUADS * index);
            }
        }
        word
    };
    let (quads, rest) = codes.as_chunks::<4>();
    let (whole, quads) = quads.as_chunks::<QUADS>();
    let (words, _) = out.as_chunks_mut::<4>();
    let (full, left) = words.split_at_mut(whole.len().min(words.len()));
    for (out, quads) in full.iter_mut().zip(whole) {
        *out = word(quads);
    }
    left.fill([0; 4]);
    let Some(partial) = left.first_mut() else {
        return;
    };
    // Missing codes are those that pack to 0.
    let mut last = [[offset.wrapping_neg(); 4]; QUADS];
    let slots = last.as_flattened_mut().iter_mut();
    for (slot, &code) in slots.zip(quads.as_flattened().iter().chain(rest)) {
        *slot = code;
    }
    *partial = word(&last);
}

/// Packed rows of a matrix, and the bits of the scales of its blocks and of their minima, if they have some.
pub(super) struct PackedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) scales: Vec<u16>,
    pub(super) mins: Option<Vec<u16>>,
}

/// Packs the rows of a matrix, on the engine's threads. O(rows · cols).
///
/// # Errors
/// [`LinearError::CodeRange`] for a weight of 128, which only [`Layout::Int8Pairs`] can represent and no byte holds.
pub(super) fn pack(matrix: &Matrix<'_>) -> Result<PackedRows, LinearError> {
    let (layout, rows, cols) = (matrix.layout(), matrix.rows(), matrix.cols());
    let packing = Packing::of(layout, cols);
    let row_bytes = packing.row_bytes();
    let len = rows.checked_mul(row_bytes).ok_or(LinearError::TooLarge)?;
    if packing.parts.is_some() {
        return Ok(PackedRows {
            bytes: matrix.bytes().to_vec(),
            scales: Vec::new(),
            mins: None,
        });
    }
    let group_rows = layout.group_rows();
    let group_bytes = layout.group_bytes(cols)?;
    team::together(|| {
        let mut bytes = vec![0; len];
        let groups = matrix.bytes().par_chunks_exact(group_bytes);
        let outs = bytes.par_chunks_mut(group_rows * row_bytes);
        let room = || vec![0; group_rows * cols];
        let packed = groups.zip(outs).enumerate().map_init(room, |codes, item| {
            let (index, (group, out)) = item;
            let wide = unpack(layout, cols, group, codes);
            if let Some((row, col)) = wide {
                return Some((index * group_rows + row, col));
            }
            let outs = out.chunks_exact_mut(row_bytes);
            for (codes, out) in codes.chunks_exact(cols).zip(outs) {
                packing.pack(codes, out);
            }
            None
        });
        // The first in the order of rows, whichever is found first.
        if let Some((row, col)) = packed.find_map_first(|wide| wide) {
            return Err(LinearError::CodeRange { row, col });
        }
        let (mut scales, mut mins) = (Vec::new(), None);
        if let Layout::Block(format) = layout {
            let blocks = matrix.bytes().par_chunks_exact(format.bytes());
            let scale = |block| format.scale(block).to_bits();
            scales = blocks.clone().map(scale).collect();
            if format.min_offset().is_some() {
                mins = Some(blocks.map(|block| format.min(block).to_bits()).collect());
            }
        }
        Ok(PackedRows {
            bytes,
            scales,
            mins,
        })
    })
}

/// Returns the codes of a group of rows, one row after another, from the given [`Layout`]. Returns the row and the
/// column of a weight of 128.
fn unpack(layout: Layout, cols: usize, group: &[u8], codes: &mut [i8]) -> Option<(usize, usize)> {
    let mut wide = None;
    match layout {
        Layout::Int8 => {
            for (code, &byte) in codes.iter_mut().zip(group) {
                *code = byte.cast_signed();
            }
        }
        Layout::Int8Pairs => each(cols, codes, |row, col| {
            let at = (col / 4 * 4 + row) * 4 + col % 4;
            let code = i16::from(group[at].cast_signed());
            // The odd column's byte is 1 too low if the even column's is negative.
            let lost = i16::from(col % 2 == 1 && group[at - 1] & 0x80 != 0);
            if code + lost > 127 {
                wide = Some((row, col));
            }
            (code + lost) as i8
        }),
        Layout::Int4 => each(cols, codes, |row, col| {
            let nibble = group[2 * col + row / 2] >> (4 * (row % 2)) & 15;
            // Row 3 is in two's complement, the others have 8 added.
            let code = if row == 3 { nibble ^ 8 } else { nibble };
            code.cast_signed() - 8
        }),
        Layout::TernaryLanes => each(cols, codes, |row, col| {
            let word = group[col / 2 * 4..].first_chunk().copied();
            let word = u32::from_le_bytes(word.unwrap_or_default());
            let lane = (word.rotate_right(row as u32 / 2 * 4) >> (16 * (col % 2))) as i16;
            let code = if row % 2 == 0 {
                (lane & 3) - 1
            } else {
                lane >> 14
            };
            code as i8
        }),
        // Twelve bytes have sixty columns: the first digits of all, then the second ones, and so on.
        Layout::FiveTrits => {
            for (codes, bytes) in codes.chunks_mut(60).zip(group.chunks(12)) {
                for (codes, power) in codes.chunks_mut(12).zip([1, 3, 9, 27, 81]) {
                    for (code, byte) in codes.iter_mut().zip(bytes) {
                        // Digit n of five is the whole part of three times the fraction of 3ⁿ times the byte.
                        let fraction = byte.wrapping_mul(power);
                        *code = ((u16::from(fraction) * 3) >> 8) as i8 - 1;
                    }
                }
            }
        }
        Layout::Block(format) => {
            // The lengths fit, because a matrix was made of these bytes.
            let written = block::codes(format, group, codes);
            debug_assert_eq!(written, Ok(()));
        }
    }
    wide
}

/// Fills rows of codes.
fn each(cols: usize, codes: &mut [i8], mut code: impl FnMut(usize, usize) -> i8) {
    for (row, codes) in codes.chunks_exact_mut(cols).enumerate() {
        for (col, slot) in codes.iter_mut().enumerate() {
            *slot = code(row, col);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs code by code, as defined in `kernels/include/tercet/linear.cuh`.
    fn by_definition(bits: usize, codes: &[i8], offset: i8, out: &mut [u8]) {
        for (word, codes) in out.chunks_exact_mut(4).zip(codes.chunks(32 / bits)) {
            for (column, &code) in codes.iter().enumerate() {
                let code = code.wrapping_add(offset).cast_unsigned();
                word[column % 4] |= code << (bits * (column / 4));
            }
        }
    }

    #[test]
    fn words_are_as_their_definition_says() {
        for (bits, offset) in [(2, 1), (2, 0), (4, 8), (4, 0), (8, 0)] {
            let packing = Packing {
                bits,
                origin: [1, 8, 0][bits / 4] - i32::from(offset),
                block: None,
                parts: None,
                cols: 0,
            };
            assert_eq!(packing.offset(), offset);
            for len in 0..200_usize {
                // Includes codes that no layout has.
                let codes: Vec<i8> = (0..len)
                    .map(|i| (i * i * 37 + i * 11) as u8 as i8)
                    .collect();
                let bytes = len.next_multiple_of(128) * bits / 8 + 4;
                let mut expected = vec![0; bytes];
                by_definition(bits, &codes, offset, &mut expected);
                let mut found = vec![0xA5; bytes];
                packing.pack(&codes, &mut found);
                assert_eq!(found, expected, "{len} of {bits} bits");
            }
        }
    }
}
