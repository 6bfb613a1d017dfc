//! A 32-bit value for each row.

/// One value a row, as a slice of this machine's or as the little-endian bytes of a file, at any alignment.
///
/// A tensor of a GGUF file in flash is taken as it lies: no copy, whatever the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Table<'a> {
    /// A slice.
    Words(&'a [i32]),
    /// Four bytes each, little-endian; what remains at the end is no value.
    Bytes(&'a [u8]),
}

impl Table<'_> {
    /// How many values.
    pub const fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Bytes(bytes) => bytes.len() / 4,
        }
    }

    /// True for none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a row; `None` past the last.
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

    /// The value of a row as the pattern of an f32.
    #[inline]
    pub fn get_f32(&self, row: usize) -> Option<f32> {
        self.get(row).map(|bits| f32::from_bits(bits as u32))
    }

    /// The values from a row on, `rows` of them; fewer where there are no more.
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

/// The values of a table from a row on, then 0 for ever; 0 from the start without a table.
///
/// A step is a comparison and a load, where [`Table::get`] would check its index anew.
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
