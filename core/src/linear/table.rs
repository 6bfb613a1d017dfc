//! A table with one 32-bit value per row.

/// One value per row, as a native slice or as the little-endian bytes of a file, at any alignment.
///
/// A tensor of a GGUF file in flash can be used without a copy, for any byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Table<'a> {
    /// A slice of words.
    Words(&'a [i32]),
    /// Four bytes per value, little-endian; a remainder at the end is no value.
    Bytes(&'a [u8]),
}

impl Table<'_> {
    /// Returns the number of values.
    pub const fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Bytes(bytes) => bytes.len() / 4,
        }
    }

    /// Returns true if there are no values.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a row; `None` after the last.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i32> {
        match self {
            Self::Words(words) => words.get(row).copied(),
            Self::Bytes(bytes) => {
                let bytes = bytes.get(row.checked_mul(4)?..)?.first_chunk()?;
                Some(i32::from_le_bytes(*bytes))
            }
        }
    }

    /// Returns the value of a row as an f32 with the same bit pattern.
    #[inline]
    pub fn get_f32(&self, row: usize) -> Option<f32> {
        self.get(row).map(|bits| f32::from_bits(bits as u32))
    }

    /// Returns `rows` values from a row on, or fewer if there are no more.
    pub fn part(&self, first: usize, rows: usize) -> Self {
        match self {
            Self::Words(words) => {
                let rest = words.get(first..).unwrap_or_default();
                Self::Words(rest.get(..rows).unwrap_or(rest))
            }
            Self::Bytes(bytes) => {
                let rest = first.checked_mul(4).and_then(|first| bytes.get(first..));
                let rest = rest.unwrap_or_default();
                let part = rows.checked_mul(4).and_then(|bytes| rest.get(..bytes));
                Self::Bytes(part.unwrap_or(rest))
            }
        }
    }
}

/// The values of a table from a row on, then 0 without end; without a table, 0 from the start.
///
/// A step is a comparison and a load; [`Table::get`] would check its index each time.
#[derive(Debug)]
pub(super) enum Values<'a> {
    None,
    Words(&'a [i32]),
    Bytes(core::slice::ChunksExact<'a, u8>),
}

impl<'a> Values<'a> {
    pub(super) fn new(table: Option<&Table<'a>>, first: usize) -> Self {
        match table.map(|table| table.part(first, usize::MAX)) {
            None => Self::None,
            Some(Table::Words(words)) => Self::Words(words),
            Some(Table::Bytes(bytes)) => Self::Bytes(bytes.chunks_exact(4)),
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> i32 {
        match self {
            Self::None => 0,
            Self::Words(words) => match words.split_first() {
                Some((&word, rest)) => {
                    *words = rest;
                    word
                }
                None => 0,
            },
            Self::Bytes(bytes) => {
                let bytes = bytes.next().and_then(<[u8]>::first_chunk);
                bytes.map_or(0, |&bytes| i32::from_le_bytes(bytes))
            }
        }
    }
}
