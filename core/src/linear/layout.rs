//! Memory layouts of weight matrices.

use super::{LinearError, five_trits};
use crate::block::Format;

/// Largest number of weights per row: 2¹⁴ · 2¹⁶ = 2³⁰ bounds a sum of int8 products.
pub const MAX_COLS: usize = 1 << 16;

/// Largest number of rows whose sums a kernel keeps while it goes through the columns.
pub(crate) const TABLE_ROWS: usize = 256;

/// Memory layout of a weight matrix. Rows are outputs, columns are inputs.
///
/// | layout | weights | bits per weight | source |
/// |---|---|---|---|
/// | `Int8` | −128..=127 | 8 | rows as in any file |
/// | `Int8Pairs` | −127..=127 | 8 | [`super::pack`] |
/// | `Int4` | −8..=7 | 4 | [`super::pack`] |
/// | `TernaryLanes` | −1..=1 | 2 | [`super::pack::ternary_lanes`] |
/// | `FiveTrits` | −1..=1 | 1.6 | [`super::pack`] |
/// | `Block` | those of the [`Format`] | 1.69 to 8.5 | a GGUF tensor, unchanged |
///
/// # Int8Pairs
/// Tiles of four rows and eight columns, with eight little-endian u32 per tile. A group of four rows is its tiles in
/// the order of their columns. Missing rows and columns hold 0. Words 0 to 3 of a tile are columns 0 to 3 of its rows
/// 0 to 3; words 4 to 7 are columns 4 to 7. Each half of a word as an i16 is e + 256·o, for the weights e of an even
/// column and o of the next, odd column: columns 0 and 1 in the low half, 2 and 3 in the high half. (So the bytes are
/// those of the rows, but with 1 subtracted from the odd column's byte if the even column's is negative.) Every bit
/// pattern is valid; an odd column's weight is then within −128..=128.
///
/// # Int4
/// Tiles of four rows and eight columns, with four little-endian u32 per tile, in the order of `Int8Pairs`. Word k of
/// a tile is column 2k in its low half and column 2k + 1 in its high half. A half is a + 16·b + 256·c + 4096·d, for
/// the weights plus 8 of its rows 0 to 3, with its highest bit then flipped (which makes row 3 two's complement).
/// Every bit pattern is valid.
///
/// # TernaryLanes
/// Eight rows per group; missing rows, and missing columns up to a multiple of 64, hold 0. A group has one
/// little-endian u32 per pair of columns 2p, 2p + 1, with p ascending. To get rows 2j and 2j + 1 of the group, rotate
/// the word right by 4j and select the bits of 0xC003C003. The low half is column 2p, the high half is column 2p + 1,
/// and each half as an i16 is (a + 1) + 2¹⁴·b for the weights a and b of the two rows.
///
/// # FiveTrits
/// Row by row, 60 columns per 12 bytes; missing columns up to a multiple of 60 hold 0. Byte m of a group holds the
/// columns m + 12·n, n = 0 to 4. Weight plus 1 of each is a digit of a number v < 243 in base 3, with column m's as
/// the most significant. The byte is ⌈256·v / 243⌉, as in TQ1_0. Every bit pattern is valid: v is ⌊243·byte / 256⌋,
/// and thirteen patterns are duplicates of another's v.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Layout {
    /// One byte per weight, row by row.
    Int8,
    /// One byte per weight, two columns per 16-bit lane, tiles of four rows.
    Int8Pairs,
    /// Four bits per weight, four rows per 16-bit lane.
    Int4,
    /// Two bits per weight, two rows per 16-bit lane.
    TernaryLanes,
    /// Five ternary weights per byte, row by row.
    FiveTrits,
    /// GGUF blocks, a whole number of blocks per row.
    Block(Format),
}

impl Layout {
    /// Layouts without blocks.
    const PLAIN: [Self; 5] = [
        Self::Int8,
        Self::Int8Pairs,
        Self::Int4,
        Self::TernaryLanes,
        Self::FiveTrits,
    ];

    /// Every layout: those without blocks, then the formats in the order of [`Format::ALL`].
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

    /// Returns the layout's name, in lower case.
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

    /// Returns the layout with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Returns the lowest and the highest code of a weight.
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

    /// Returns true if weights can be converted to this layout: packed from codes, or encoded from floats. False for
    /// blocks of formats that can only be read.
    pub const fn can_encode(self) -> bool {
        match self {
            Self::Block(format) => format.can_encode(),
            _ => true,
        }
    }

    /// Returns a set of layouts, one bit per layout, for [`Only`](crate::scalar::Only).
    pub const fn set(layouts: &[Self]) -> u32 {
        let mut set = 0;
        let mut rest = layouts;
        while let Some((layout, others)) = rest.split_first() {
            set |= layout.bit();
            rest = others;
        }
        set
    }

    /// Returns the bit of this layout in a set.
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

    /// Returns true if a set contains this layout.
    #[inline]
    pub const fn is_in(self, set: u32) -> bool {
        set & self.bit() != 0
    }

    /// Returns the value of 1 in a sum, before any scale: 2⁻²⁴ for blocks, whose f16 scales and minima are integer
    /// multiples of it.
    #[inline]
    pub const fn unit(self) -> f32 {
        match self {
            Self::Block(_) => 1.0 / 16_777_216.0,
            _ => 1.0,
        }
    }

    /// Returns the number of rows that are stored together: a part of a matrix begins at a multiple of it.
    #[inline]
    pub const fn group_rows(self) -> usize {
        match self {
            Self::TernaryLanes => 8,
            Self::Int8Pairs | Self::Int4 => 4,
            Self::Int8 | Self::FiveTrits | Self::Block(_) => 1,
        }
    }

    /// Returns the number of bytes of a group of rows.
    ///
    /// # Errors
    /// [`LinearError::Columns`] for no columns or more than [`MAX_COLS`]; [`LinearError::Partial`] if a row is not a
    /// whole number of blocks.
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

    /// Returns the number of bytes of a matrix.
    ///
    /// # Errors
    /// Those of [`Layout::group_bytes`]; [`LinearError::TooLarge`] if the number does not fit `usize`.
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

    /// Returns the number of words of scratch that a product needs. It is the same on every machine, although most
    /// use none of it.
    ///
    /// Cortex-M kernels store the activations there, widened to pairs of 16 bits. Some are faster with more words:
    /// see [`Layout::fast_scratch_len`].
    ///
    /// ```
    /// use tercet_core::linear::Layout;
    ///
    /// static SCRATCH: [u32; Layout::TernaryLanes.scratch_len(256, 1024)] = [0; 528];
    /// ```
    pub const fn scratch_len(self, _rows: usize, cols: usize) -> usize {
        match self {
            // Pairs, and one sum per 64 columns.
            Self::TernaryLanes => cols.div_ceil(64) * 33,
            Self::Int8 => cols.div_ceil(4) * 2,
            // Pairs, and one sum per 32 columns.
            Self::Block(Format::Tq2_0) => cols.div_ceil(32) * 17,
            Self::Int8Pairs | Self::Int4 => cols.div_ceil(8) * 4,
            Self::FiveTrits | Self::Block(_) => 0,
        }
    }

    /// Returns the largest number of words of scratch that a product uses: at least [`Layout::scratch_len`]. It is
    /// more if kernels for Cortex-M with the DSP extension store tables or widened activations there, or if kernels
    /// for processors without vectors store the tables of TQ1_0.
    ///
    /// Products accept any number of words from `scratch_len` on and return the same bits; with fewer than this
    /// number, some use slower loops.
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
        // Words per row besides the tables: the sums of a few blocks or groups, and of all.
        let words = match self {
            Self::FiveTrits => 3,
            Self::Block(Format::Tq1_0) => 4,
            // Pairs.
            Self::Block(Format::Q8_0) => return cols.div_ceil(4) * 2,
            _ => return self.scratch_len(rows, cols),
        };
        if rows < 4 {
            // Tables do not pay off here.
            return self.scratch_len(rows, cols);
        }
        let rows = if rows < TABLE_ROWS { rows } else { TABLE_ROWS };
        6 * 256 + rows.next_multiple_of(4) * words
    }
}
