//! How a matrix of weights lies in memory.

use super::{LinearError, five_trits};
use crate::block::Format;

/// The most weights in a row: 2¹⁴ · 2¹⁶ = 2³⁰ bounds a sum of int8 products.
pub const MAX_COLS: usize = 1 << 16;

/// The most rows whose sums a kernel keeps while it goes through columns.
pub(crate) const TABLE_ROWS: usize = 256;

/// How a matrix of weights lies in memory. Rows are outputs, columns inputs.
///
/// | layout | weights | bits a weight | from |
/// |---|---|---|---|
/// | `Int8` | −128..=127 | 8 | rows as they lie in any file |
/// | `Int8Pairs` | −127..=127 | 8 | [`super::pack`] |
/// | `Int4` | −8..=7 | 4 | [`super::pack`] |
/// | `TernaryLanes` | −1..=1 | 2 | [`super::pack::ternary_lanes`] |
/// | `FiveTrits` | −1..=1 | 1.6 | [`super::pack`] |
/// | `Block` | those of the [`Format`] | 1.69 to 8.5 | a GGUF tensor, as it lies |
///
/// # Int8Pairs
/// Tiles of four rows and eight columns, eight little-endian u32 each; a group of four rows is its tiles in the order of their
/// columns. Missing rows and columns hold 0. Words 0 to 3 of a tile are columns 0 to 3 of its rows 0 to 3, words 4 to 7 are
/// columns 4 to 7. Each half of a word as an i16 is e + 256·o for the weights e and o of an even column and the odd one after it:
/// columns 0 and 1 in the low half, 2 and 3 in the high half. (So the bytes are those of the rows, with 1 taken from the odd
/// column's where the even column's is negative.) Every pattern stands for weights, an odd column's within −128..=128.
///
/// # Int4
/// Tiles of four rows and eight columns, four little-endian u32 each, in the order of `Int8Pairs`. Word k of a tile is column 2k in
/// its low half and 2k + 1 in its high half. A half is a + 16·b + 256·c + 4096·d for the weights plus 8 of its rows 0 to 3, and
/// then its highest bit flipped (which makes row 3 two's complement). Every pattern stands for weights.
///
/// # TernaryLanes
/// Eight rows a group; missing rows and columns up to a multiple of 64 hold 0. A group is one little-endian u32 for each pair of
/// columns 2p, 2p + 1, p rising. Rows 2j and 2j + 1 of the group are the bits that 0xC003C003 selects of the word rotated right by
/// 4j: the low half is column 2p, the high half column 2p + 1, and each half as an i16 is (a + 1) + 2¹⁴·b for the weights a and
/// b of the two rows.
///
/// # FiveTrits
/// Row by row, 60 columns in each 12 bytes; missing columns up to a multiple of 60 hold 0. Byte m of a group is columns m + 12·n, n = 0
/// to 4: the digits, weight plus 1, of a number v < 243 in base 3, column m's the most significant, stored as ⌈256·v / 243⌉ (which
/// is how TQ1_0 has them). Every pattern stands for weights: v is ⌊243·byte / 256⌋, and thirteen of the patterns are other names
/// of a v.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Layout {
    /// One byte a weight, row by row.
    Int8,
    /// One byte a weight, two columns in each 16-bit lane, tiles of four rows.
    Int8Pairs,
    /// Four bits a weight, four rows in each 16-bit lane.
    Int4,
    /// Two bits a weight, two rows in each 16-bit lane.
    TernaryLanes,
    /// Five ternary weights a byte, row by row.
    FiveTrits,
    /// GGUF blocks, whole blocks a row.
    Block(Format),
}

impl Layout {
    /// Layouts that are no blocks.
    const PLAIN: [Self; 5] = [
        Self::Int8,
        Self::Int8Pairs,
        Self::Int4,
        Self::TernaryLanes,
        Self::FiveTrits,
    ];

    /// Every layout: those that are no blocks, and then the formats, as [`Format::ALL`] has them.
    pub const ALL: [Self; Self::PLAIN.len() + Format::ALL.len()] = {
        let mut all = [Self::Int8; Self::PLAIN.len() + Format::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = if at < Self::PLAIN.len() {
                Self::PLAIN[at]
            } else {
                Self::Block(Format::ALL[at - Self::PLAIN.len()])
            };
            at += 1;
        }
        all
    };

    /// Its name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Int8Pairs => "int8_pairs",
            Self::Int4 => "int4",
            Self::TernaryLanes => "ternary_lanes",
            Self::FiveTrits => "five_trits",
            Self::Block(format) => format.name(),
        }
    }

    /// The layout of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// The lowest and the highest code of a weight.
    #[inline]
    pub const fn codes(self) -> (i8, i8) {
        match self {
            Self::Int8 => (-128, 127),
            Self::Int8Pairs => (-127, 127),
            Self::TernaryLanes | Self::FiveTrits => (-1, 1),
            Self::Int4 => (-8, 7),
            Self::Block(format) => format.codes(),
        }
    }

    /// Whether weights can be brought into it: packed from codes, or encoded from floats. Blocks of formats that are read only can not.
    pub const fn can_encode(self) -> bool {
        match self {
            Self::Block(format) => format.can_encode(),
            _ => true,
        }
    }

    /// A set of layouts, a bit each: what [`Only`](crate::scalar::Only) takes.
    pub const fn set(layouts: &[Self]) -> u32 {
        let mut set = 0;
        let mut rest = layouts;
        while let Some((layout, others)) = rest.split_first() {
            set |= layout.bit();
            rest = others;
        }
        set
    }

    /// The bit of this layout in a set.
    pub const fn bit(self) -> u32 {
        let at = match self {
            Self::Int8 => 0,
            Self::Int8Pairs => 1,
            Self::Int4 => 2,
            Self::TernaryLanes => 3,
            Self::FiveTrits => 4,
            Self::Block(format) => 5 + format as u32,
        };
        1 << at
    }

    /// Whether a set has this layout.
    #[inline]
    pub const fn is_in(self, set: u32) -> bool {
        set & self.bit() != 0
    }

    /// What 1 in a sum stands for, before any scale: 2⁻²⁴ for blocks, whose scales and minima, f16, are whole
    /// numbers of it.
    #[inline]
    pub const fn unit(self) -> f32 {
        match self {
            Self::Block(_) => 1.0 / 16_777_216.0,
            _ => 1.0,
        }
    }

    /// Rows that lie together: a part of a matrix begins at a multiple of them.
    #[inline]
    pub const fn group_rows(self) -> usize {
        match self {
            Self::TernaryLanes => 8,
            Self::Int8Pairs | Self::Int4 => 4,
            Self::Int8 | Self::FiveTrits | Self::Block(_) => 1,
        }
    }

    /// Bytes of a group of rows.
    ///
    /// # Errors
    /// [`LinearError::Columns`] for none or more than [`MAX_COLS`], [`LinearError::Partial`] when a row is no whole number of
    /// blocks.
    pub const fn group_bytes(self, cols: usize) -> Result<usize, LinearError> {
        if cols == 0 || cols > MAX_COLS {
            let max = MAX_COLS;
            return Err(LinearError::Columns { cols, max });
        }
        match self {
            Self::Int8 => Ok(cols),
            Self::Int8Pairs => Ok(cols.div_ceil(8) * 32),
            Self::Int4 => Ok(cols.div_ceil(8) * 16),
            Self::TernaryLanes => Ok(cols.next_multiple_of(64) * 2),
            Self::FiveTrits => Ok(cols.div_ceil(five_trits::COLS) * five_trits::BYTES),
            Self::Block(format) => {
                let (block, bytes) = format.layout();
                if !cols.is_multiple_of(block) {
                    return Err(LinearError::Partial { cols, block });
                }
                Ok(cols / block * bytes)
            }
        }
    }

    /// Bytes of a matrix.
    ///
    /// # Errors
    /// Those of [`Layout::group_bytes`]; [`LinearError::TooLarge`] when they do not fit `usize`.
    pub const fn bytes(self, rows: usize, cols: usize) -> Result<usize, LinearError> {
        let group = match self.group_bytes(cols) {
            Ok(group) => group,
            Err(error) => return Err(error),
        };
        match rows.div_ceil(self.group_rows()).checked_mul(group) {
            Some(bytes) => Ok(bytes),
            None => Err(LinearError::TooLarge),
        }
    }

    /// Words of scratch that a product needs, the same on every machine, although most take none of it.
    ///
    /// Cortex-M kernels keep the activations there, widened to pairs of 16 bits. With more words than these some are faster:
    /// [`Layout::fast_scratch_len`].
    ///
    /// ```
    /// use tercet_core::linear::Layout;
    ///
    /// static SCRATCH: [u32; Layout::TernaryLanes.scratch_len(256, 1024)] = [0; 528];
    /// ```
    pub const fn scratch_len(self, _rows: usize, cols: usize) -> usize {
        match self {
            // Pairs, and a sum for each 64 columns.
            Self::TernaryLanes => cols.div_ceil(64) * 33,
            Self::Int8 => cols.div_ceil(4) * 2,
            // Pairs, and a sum for each 32 columns.
            Self::Block(Format::Tq2_0) => cols.div_ceil(32) * 17,
            Self::Int8Pairs | Self::Int4 => cols.div_ceil(8) * 4,
            Self::FiveTrits | Self::Block(_) => 0,
        }
    }

    /// The most words of scratch that a product makes use of: at least [`Layout::scratch_len`], and more where kernels for
    /// Cortex-M with the DSP extension put tables or widened activations, and those for processors without vectors the tables of TQ1_0.
    ///
    /// Products take any number of words from `scratch_len` on and give the same bits, with fewer than these by slower loops.
    ///
    /// ```
    /// use tercet_core::block::Format;
    /// use tercet_core::linear::Layout;
    ///
    /// const TQ1_0: Layout = Layout::Block(Format::Tq1_0);
    /// assert_eq!(TQ1_0.scratch_len(256, 1024), 0);
    /// assert_eq!(TQ1_0.fast_scratch_len(256, 1024), 2560);
    /// ```
    pub const fn fast_scratch_len(self, rows: usize, cols: usize) -> usize {
        // Words a row beside the tables: the sums of a few blocks or groups, and of all.
        let words = match self {
            Self::FiveTrits => 3,
            Self::Block(Format::Tq1_0) => 4,
            // Pairs.
            Self::Block(Format::Q8_0) => return cols.div_ceil(4) * 2,
            _ => return self.scratch_len(rows, cols),
        };
        if rows < 4 {
            // Not worth tables.
            return self.scratch_len(rows, cols);
        }
        let rows = if rows < TABLE_ROWS { rows } else { TABLE_ROWS };
        6 * 256 + rows.next_multiple_of(4) * words
    }
}
