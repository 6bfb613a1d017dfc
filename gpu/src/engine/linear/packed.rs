//! Weights as the kernels take them: rows of 2, 4 or 8 bits a weight, whatever layout they came in.

use std::ops::Range;

use tercet_core::block::{self, Format};
use tercet_core::linear::{Layout, LinearError, Matrix};

/// Bytes that a lane loads at once; rows are multiples of them.
pub(super) const CHUNK: usize = 16;

/// How rows lie: as `Packed` in `kernels/include/tercet/linear.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    /// Bits of a weight: 2, 4 or 8.
    pub(super) bits: usize,
    /// Columns of a block with a scale; `None` where there are no blocks.
    pub(super) block: Option<usize>,
    pub(super) cols: usize,
}

impl Packing {
    /// [`LinearError::LeftOut`] for a layout that kernels do not have.
    pub(super) const fn of(layout: Layout, cols: usize) -> Result<Self, LinearError> {
        let (bits, block) = match layout {
            Layout::Int8 | Layout::Int8Pairs => (8, None),
            Layout::Int4 => (4, None),
            Layout::TernaryLanes | Layout::FiveTrits => (2, None),
            Layout::Block(format) => {
                let bits = match format {
                    Format::Tq1_0 | Format::Tq2_0 | Format::Q2_0 => 2,
                    Format::Q4_0 => 4,
                    Format::Q8_0 => 8,
                };
                (bits, Some(format.len()))
            }
            _ => return Err(LinearError::LeftOut),
        };
        Ok(Self { bits, block, cols })
    }

    /// Columns of 16 bytes.
    pub(super) const fn chunk_cols(&self) -> usize {
        CHUNK * 8 / self.bits
    }

    /// Columns of a row with what fills it up, for which there are activations of 0.
    pub(super) const fn padded(&self) -> usize {
        self.cols.next_multiple_of(self.chunk_cols())
    }

    /// Bytes of a row, a multiple of 16.
    pub(super) const fn row_bytes(&self) -> usize {
        self.padded() * self.bits / 8
    }

    /// Blocks of a row, 0 where there are none.
    pub(super) const fn blocks(&self) -> usize {
        match self.block {
            Some(block) => self.cols / block,
            None => 0,
        }
    }

    /// What is added to a weight so that its code is not negative.
    const fn offset(&self) -> i8 {
        match self.bits {
            2 => 1,
            4 => 8,
            _ => 0,
        }
    }

    /// Writes a row of codes into bytes that are all 0.
    fn pack(&self, codes: &[i8], out: &mut [u8]) {
        let quads = 8 / self.bits;
        for (word, codes) in out.chunks_exact_mut(4).zip(codes.chunks(4 * quads)) {
            for (column, &code) in codes.iter().enumerate() {
                let bits = code.wrapping_add(self.offset()).cast_unsigned();
                word[column % 4] |= bits << (self.bits * (column / 4));
            }
        }
    }
}

/// Packed rows of a matrix, and the bits of its blocks' scales.
pub(super) struct PackedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) scales: Vec<u16>,
}

/// Packs the rows of a matrix. O(rows · cols).
///
/// [`LinearError::CodeRange`] for a weight of 128, which only [`Layout::Int8Pairs`] can say and no byte holds.
pub(super) fn pack(matrix: &Matrix<'_>) -> Result<PackedRows, LinearError> {
    let (layout, rows, cols) = (matrix.layout(), matrix.rows(), matrix.cols());
    let packing = Packing::of(layout, cols)?;
    let row_bytes = packing.row_bytes();
    let len = rows.checked_mul(row_bytes).ok_or(LinearError::TooLarge)?;
    let mut bytes = vec![0; len];
    let group_rows = layout.group_rows();
    let mut codes = vec![0; group_rows * cols];
    let groups = matrix.bytes().chunks_exact(layout.group_bytes(cols)?);
    let outs = bytes.chunks_mut(group_rows * row_bytes);
    for (index, (group, out)) in groups.zip(outs).enumerate() {
        if let Some((row, col)) = unpack(layout, cols, group, &mut codes) {
            let row = index * group_rows + row;
            return Err(LinearError::CodeRange { row, col });
        }
        for (codes, out) in codes
            .chunks_exact(cols)
            .zip(out.chunks_exact_mut(row_bytes))
        {
            packing.pack(codes, out);
        }
    }
    let scales = match layout {
        Layout::Block(format) => scale_bits(format, matrix.bytes()),
        _ => Vec::new(),
    };
    Ok(PackedRows { bytes, scales })
}

/// The f16 of each block.
fn scale_bits(format: Format, bytes: &[u8]) -> Vec<u16> {
    let at = scale_place(format);
    let scale = |block: &[u8]| {
        let bytes = block.get(at.clone()).and_then(<[u8]>::first_chunk);
        u16::from_le_bytes(bytes.copied().unwrap_or_default())
    };
    bytes.chunks_exact(format.bytes()).map(scale).collect()
}

/// Where in a block its scale lies.
fn scale_place(format: Format) -> Range<usize> {
    match format {
        Format::Tq1_0 | Format::Tq2_0 => format.bytes() - 2..format.bytes(),
        Format::Q2_0 | Format::Q8_0 | Format::Q4_0 => 0..2,
    }
}

/// The codes of a group of rows, one row after another, as [`Layout`] says they lie. Gives the row and the column of a weight of 128.
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
            // The odd column's byte has lost 1 where the even column's is negative.
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
        Layout::FiveTrits => each(cols, codes, |_, col| {
            let byte = group[col / 60 * 12 + col % 12];
            // Digit n of five is the whole part of three times the fraction that 3ⁿ times the byte leaves.
            let fraction = byte.wrapping_mul([1, 3, 9, 27, 81][col % 60 / 12]);
            ((u16::from(fraction) * 3) >> 8) as i8 - 1
        }),
        Layout::Block(format) => {
            // The lengths fit: a matrix was made of these bytes.
            let written = block::codes(format, group, codes);
            debug_assert_eq!(written, Ok(()));
        }
        // `Packing::of` knows no other.
        _ => {}
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
