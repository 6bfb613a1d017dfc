//! The reader.

use super::cursor::Cursor;
use super::tensor::{Listed, TensorInfo, Tensors};
use super::value::{Value, ValueType};
use super::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, GgufError, MAGIC, MAX_KEY, align};

/// Smallest number of bytes of a metadata entry: its key's length, one byte of key, the type, one byte of value.
const LEAST_ENTRY: u64 = 8 + 1 + 4 + 1;

/// A GGUF file in memory (flash, a memory map), read in place.
///
/// The constructor checks all of the header, so that nothing fails later. See [`super`] for an example.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    pub(super) version: u32,
    pub(super) alignment: u32,
    pub(super) entries: usize,
    pub(super) entries_at: Cursor<'a>,
    pub(super) tensors: usize,
    pub(super) tensors_at: Cursor<'a>,
    data: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the header of `bytes`, a whole file, and checks all of it, including the place of every tensor's data.
    ///
    /// Each tensor must have the bytes that its shape and type need, padded to the alignment, directly before the
    /// next tensor's or the file's end (the last padding may be missing). ggml requires this too. This check
    /// distinguishes formats that share a number. Names are not compared: see [`Reader::check_names`].
    ///
    /// Time is linear in the length of metadata and descriptions; the data is not read. Stack: some hundred bytes for
    /// each of [`super::MAX_DEPTH`] nested arrays.
    ///
    /// # Errors
    /// The first error found: any [`GgufError`] except `DuplicateKey`, `DuplicateTensor` and `Scratch`.
    pub fn new(bytes: &'a [u8]) -> Result<Self, GgufError> {
        let reader = Self::inspect(bytes)?;
        reader.check_sizes()?;
        Ok(reader)
    }

    /// Like [`Reader::new`], without comparing tensors' bytes with their types: for truncated files, and for files of
    /// forks with other types. [`TensorInfo::fits`] returns true for complete tensors.
    ///
    /// # Errors
    /// Those of [`Reader::new`], except `PastEnd`, `Overlap`, `Gap`, and a `Layout` of an unknown type or a partial
    /// row.
    pub fn inspect(bytes: &'a [u8]) -> Result<Self, GgufError> {
        let reader = Self::before_tensors(bytes)?;
        let alignment = reader.alignment;
        let mut cursor = reader.tensors_at;
        let mut last = 0;
        for tensor in 0..reader.tensors as u64 {
            let Listed { offset, .. } = Listed::read(&mut cursor, tensor)?;
            if !offset.is_multiple_of(alignment.into()) {
                return Err(GgufError::OffsetAlignment { tensor, offset });
            }
            if offset < last {
                return Err(GgufError::OffsetOrder { tensor, offset });
            }
            last = offset;
        }
        // A file without data may end before the padding.
        let padding =
            align(cursor.offset() as u64, alignment).saturating_sub(cursor.offset() as u64);
        let data = usize::try_from(padding)
            .ok()
            .and_then(|padding| cursor.rest().get(padding..))
            .unwrap_or_default();
        Ok(Self { data, ..reader })
    }

    /// Returns the offset of the description of tensor number `tensor`, in bytes from the start of the file, and the
    /// tensor's name. For messages about a file that was refused because of [one of its tensors](GgufError::tensor).
    ///
    /// Returns `None` if the file has no such tensor, or its description cannot be reached. Linear in the length of
    /// metadata and descriptions.
    pub fn described(bytes: &'a [u8], tensor: u64) -> Option<(usize, &'a str)> {
        let reader = Self::before_tensors(bytes).ok()?;
        if tensor >= reader.tensors as u64 {
            return None;
        }
        let mut cursor = reader.tensors_at;
        for before in 0..tensor {
            Listed::read(&mut cursor, before).ok()?;
        }
        let offset = cursor.offset();
        Some((offset, cursor.string().ok()?))
    }

    /// Reads everything before the descriptions of tensors; there is no data yet.
    fn before_tensors(bytes: &'a [u8]) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(bytes, 0);
        if cursor.array()? != MAGIC {
            return Err(GgufError::Magic);
        }
        let version = cursor.u32()?;
        match version {
            2 | 3 => {}
            1 => return Err(GgufError::VersionOne),
            _ if (1..=3).contains(&version.swap_bytes()) => return Err(GgufError::BigEndian),
            _ => return Err(GgufError::Version { version }),
        }
        let (tensor_count, entry_count) = (cursor.u64()?, cursor.u64()?);
        // Before any loop relies on the counts: that many entries and descriptions must fit into the rest.
        let left = cursor.rest().len() as u64;
        let fitting = |count: u64, least: u64| {
            let fits = count.checked_mul(least).is_some_and(|bytes| bytes <= left);
            usize::try_from(count).ok().filter(|_| fits)
        };
        let entries = fitting(entry_count, LEAST_ENTRY)
            .ok_or(GgufError::EntryCount { count: entry_count })?;
        let tensors = fitting(tensor_count, Listed::LEAST).ok_or(GgufError::TensorCount {
            count: tensor_count,
        })?;

        let entries_at = cursor;
        let mut alignment = None;
        for _ in 0..entries {
            let (key, value) = read_entry::<true>(&mut cursor)?;
            if key == ALIGNMENT_KEY && alignment.is_none() {
                alignment = Some(read_alignment(&value)?);
            }
        }
        let alignment = alignment.unwrap_or(DEFAULT_ALIGNMENT);

        Ok(Self {
            version,
            alignment,
            entries,
            entries_at,
            tensors,
            tensors_at: cursor,
            data: &[],
        })
    }

    /// Checks that the data section contains the tensors' data and their padding, and nothing else.
    fn check_sizes(&self) -> Result<(), GgufError> {
        let len = self.data.len() as u64;
        let mut first = self.tensors().map(|info| info.offset).take(1);
        let lead = first.next().unwrap_or(len).min(len);
        if lead > 0 {
            return Err(GgufError::Gap {
                tensor: 0,
                needed: 0,
                stored: lead,
            });
        }
        for (tensor, info) in (0..).zip(self.tensors()) {
            let error = |error| GgufError::Layout { tensor, error };
            let needed = info.byte_len().map_err(error)?;
            let stored = info.stored_len();
            if len
                .checked_sub(info.offset)
                .is_none_or(|left| needed > left)
            {
                return Err(GgufError::PastEnd {
                    tensor,
                    needed,
                    stored,
                });
            }
            if needed > stored {
                return Err(GgufError::Overlap {
                    tensor,
                    needed,
                    stored,
                });
            }
            if !info.fits() {
                return Err(GgufError::Gap {
                    tensor,
                    needed,
                    stored,
                });
            }
        }
        Ok(())
    }

    /// Returns the version of the format, 2 or 3 (equal except for big-endian files, which are refused).
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Returns the alignment of tensors' offsets: `general.alignment`, or 32 if it is missing. A power of two.
    pub const fn alignment(&self) -> u32 {
        self.alignment
    }

    /// Returns the data section: all bytes after the descriptions and their padding.
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the metadata in the file's order. A step takes time linear in the number of strings that it skips.
    pub const fn metadata(&self) -> Metadata<'a> {
        Metadata {
            cursor: self.entries_at,
            left: self.entries,
        }
    }

    /// Returns the value of the first entry with that key; linear in the number of entries and strings.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.metadata()
            .find(|(found, _)| *found == key)
            .map(|(_, value)| value)
    }

    /// Returns the tensors in the file's order.
    pub fn tensors(&self) -> Tensors<'a> {
        Tensors::new(self.tensors_at, self.tensors, self.data, self.alignment)
    }

    /// Returns the first tensor with that name; linear in the number of tensors.
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'a>> {
        self.tensors().find(|tensor| tensor.name == name)
    }
}

/// Reads a key and its value.
fn read_entry<'a, const CHECK: bool>(
    cursor: &mut Cursor<'a>,
) -> Result<(&'a str, Value<'a>), GgufError> {
    let offset = cursor.offset();
    let key = cursor.string()?;
    if !(1..=MAX_KEY).contains(&key.len()) {
        let len = key.len() as u64;
        return Err(GgufError::KeyLength { offset, len });
    }
    let kind = ValueType::read(cursor)?;
    let value = Value::read::<CHECK>(cursor, kind, 0)?;
    Ok((key, value))
}

fn read_alignment(value: &Value<'_>) -> Result<u32, GgufError> {
    match *value {
        Value::U32(value) if value.is_power_of_two() => Ok(value),
        Value::U32(value) => Err(GgufError::Alignment { value }),
        _ => Err(GgufError::AlignmentType),
    }
}

/// Iterator over the metadata of a [`Reader`]: keys and values.
#[derive(Clone, Debug)]
pub struct Metadata<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl Metadata<'_> {
    /// Returns the offset of the next entry.
    pub(crate) const fn offset(&self) -> usize {
        self.cursor.offset()
    }
}

impl<'a> Iterator for Metadata<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        read_entry::<false>(&mut self.cursor).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Metadata<'_> {}
