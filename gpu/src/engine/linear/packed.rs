//! Weights as the kernels take them: rows of 2, 4 or 8 bits a weight, whatever layout they came in.

use tercet_core::block;
use tercet_core::linear::{Layout, LinearError, Matrix};

/// Bytes that a lane loads at once; rows are multiples of them.
pub(super) const CHUNK: usize = 16;

/// How rows lie: as `Packed` in `kernels/include/tercet/linear.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    /// Bits of a weight: 2, 4 or 8.
    pub(super) bits: usize,
    /// What is taken from a code before it is packed: not 0 only where blocks have minima, which make up for it.
    pub(super) origin: i32,
    /// Columns of a block with a scale; `None` where there are no blocks.
    pub(super) block: Option<usize>,
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
                Layout::Block(format) => Some(format.len()),
                _ => None,
            },
            cols,
        }
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

    /// What is added to a weight so that what is packed is not negative; less the origin.
    const fn offset(&self) -> i8 {
        let offset = match self.bits {
            2 => 1,
            4 => 8,
            _ => 0,
        };
        // Of a format's lowest code at least: within 4 bits.
        (offset - self.origin) as i8
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

/// Packed rows of a matrix, and the bits of its blocks' scales and of their minima, where they have some.
pub(super) struct PackedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) scales: Vec<u16>,
    pub(super) mins: Option<Vec<u16>>,
}

/// Packs the rows of a matrix. O(rows · cols).
///
/// [`LinearError::CodeRange`] for a weight of 128, which only [`Layout::Int8Pairs`] can say and no byte holds.
pub(super) fn pack(matrix: &Matrix<'_>) -> Result<PackedRows, LinearError> {
    let (layout, rows, cols) = (matrix.layout(), matrix.rows(), matrix.cols());
    let packing = Packing::of(layout, cols);
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
    let (mut scales, mut mins) = (Vec::new(), None);
    if let Layout::Block(format) = layout {
        let blocks = matrix.bytes().chunks_exact(format.bytes());
        scales = blocks
            .clone()
            .map(|block| format.scale(block).to_bits())
            .collect();
        if format.min_offset().is_some() {
            mins = Some(blocks.map(|block| format.min(block).to_bits()).collect());
        }
    }
    Ok(PackedRows {
        bytes,
        scales,
        mins,
    })
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
