//! Division of a matrix into groups, and the sizes of its parts.

use super::{PaletteError, scratch_len};

/// Number of bits of an index, 1 to 8; a palette has 2^bits entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Width(u8);

impl Width {
    /// Every width, 1 to 8 bits.
    pub const ALL: [Self; 8] = [
        Self(1),
        Self(2),
        Self(3),
        Self(4),
        Self(5),
        Self(6),
        Self(7),
        Self(8),
    ];

    /// Creates a width of 1 to 8 bits.
    ///
    /// # Errors
    /// [`PaletteError::Width`] for any other number.
    pub const fn new(bits: u8) -> Result<Self, PaletteError> {
        match bits {
            1..=8 => Ok(Self(bits)),
            _ => Err(PaletteError::Width { bits }),
        }
    }

    /// Returns the number of bits of an index.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the number of entries of a palette, 2 to 256.
    pub const fn entries(self) -> usize {
        1 << self.0
    }

    /// Returns the number of bytes of `values` indices, with the last byte padded: eight indices take as many bytes
    /// as an index has bits.
    pub const fn bytes(self, values: usize) -> usize {
        values / 8 * self.0 as usize + (values % 8 * self.0 as usize).div_ceil(8)
    }
}

/// A matrix of indices, with rows padded to whole bytes, in groups of rows that share a palette.
///
/// Row r belongs to group r / ⌈rows / groups⌉, so the numbers of rows and groups are enough; the last group may be
/// shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct IndexMatrix {
    width: Width,
    rows: usize,
    cols: usize,
    groups: usize,
}

impl IndexMatrix {
    /// Divides a matrix into `groups` groups of rows.
    ///
    /// # Errors
    /// [`PaletteError::Empty`] without values; [`PaletteError::Groups`] if a group would have no row;
    /// [`PaletteError::TooLarge`] if a buffer's length exceeds `usize`.
    pub const fn new(
        width: Width,
        rows: usize,
        cols: usize,
        groups: usize,
    ) -> Result<Self, PaletteError> {
        if rows == 0 || cols == 0 {
            return Err(PaletteError::Empty);
        }
        if groups == 0 || shares(rows, shares(rows, groups)) != groups {
            return Err(PaletteError::Groups { rows, groups });
        }
        let layout = Self {
            width,
            rows,
            cols,
            groups,
        };
        let values = rows.checked_mul(cols);
        let codebooks = groups.checked_mul(width.entries());
        match (values, codebooks, rows.checked_mul(layout.row_bytes())) {
            (Some(_), Some(_), Some(_)) => Ok(layout),
            _ => Err(PaletteError::TooLarge),
        }
    }

    /// Divides a matrix into the fewest groups of at most `group_rows` rows, all except the last of the same size.
    ///
    /// # Errors
    /// Those of [`IndexMatrix::new`]; [`PaletteError::Groups`] for groups of no rows.
    pub const fn with_rows(
        width: Width,
        rows: usize,
        cols: usize,
        group_rows: usize,
    ) -> Result<Self, PaletteError> {
        Self::new(width, rows, cols, shares(rows, group_rows))
    }

    /// Returns the number of bits of an index.
    pub const fn width(&self) -> Width {
        self.width
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of values per row.
    pub const fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the number of groups, each with a codebook and a scale.
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the number of rows of every group except the last, which may have fewer.
    pub const fn group_rows(&self) -> usize {
        shares(self.rows, self.groups)
    }

    /// Returns the number of values of every group except the last.
    pub const fn group_len(&self) -> usize {
        self.group_rows() * self.cols
    }

    /// Returns the number of values of the matrix.
    pub const fn values(&self) -> usize {
        self.rows * self.cols
    }

    /// Returns the number of bytes of a row of indices.
    pub const fn row_bytes(&self) -> usize {
        self.width.bytes(self.cols)
    }

    /// Returns the number of bytes of all indices.
    pub const fn index_bytes(&self) -> usize {
        self.rows * self.row_bytes()
    }

    /// Returns the number of entries of all codebooks, 2^bits per group.
    pub const fn codebook_len(&self) -> usize {
        self.groups * self.width.entries()
    }

    /// Returns the number of `u64`s of scratch that [`encode`](super::encode) needs: [`scratch_len`] for at most 255
    /// codes of a group.
    pub const fn scratch_len(&self) -> usize {
        let values = self.group_len();
        scratch_len(
            if values < 255 { values } else { 255 },
            self.width.entries(),
        )
    }
}

/// Returns ⌈whole / part⌉, or 0 for a part of 0, without the panic of a division.
const fn shares(whole: usize, part: usize) -> usize {
    match whole.checked_div(part) {
        Some(shares) if shares * part == whole => shares,
        Some(shares) => shares + 1,
        None => 0,
    }
}
