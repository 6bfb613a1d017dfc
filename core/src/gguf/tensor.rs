//! The tensors of a file.

use super::cursor::Cursor;
use super::{GgufError, LayoutError, MAX_DIMS, Shape, TensorType};

/// A tensor: its description and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct TensorInfo<'a> {
    /// Name of the tensor.
    pub name: &'a str,
    /// Dimensions, row first.
    pub shape: Shape,
    /// Storage type of its elements.
    pub kind: TensorType,
    /// Start of its data, in bytes from the start of the data section.
    pub offset: u64,
    /// Its data: the bytes that shape and type need. If these are unknown or incomplete (only possible with
    /// [`super::Reader::inspect`]): all of [`TensorInfo::stored`].
    pub data: &'a [u8],
    /// Bytes from its offset to the next tensor's or to the end of the file, including padding.
    pub stored: &'a [u8],
    alignment: u32,
}

impl<'a> TensorInfo<'a> {
    /// Cuts the tensor's bytes out of the data section. They end at the start of the next tensor's.
    pub(super) fn new(
        listed: &Listed<'a>,
        next: Option<&Listed<'a>>,
        data: &'a [u8],
        alignment: u32,
    ) -> Self {
        let place = |listed: &Listed<'_>| {
            usize::try_from(listed.offset).map_or(data.len(), |offset| offset.min(data.len()))
        };
        let stored = data
            .get(place(listed)..next.map_or(data.len(), place))
            .unwrap_or_default();
        let needed = listed.kind.byte_len(&listed.shape).ok();
        let own = needed.and_then(|len| stored.get(..usize::try_from(len).ok()?));
        Self {
            name: listed.name,
            shape: listed.shape,
            kind: listed.kind,
            offset: listed.offset,
            data: own.unwrap_or(stored),
            stored,
            alignment,
        }
    }

    /// Returns the number of bytes from its offset to the next tensor's or to the end of the file, including padding.
    pub const fn stored_len(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Returns the number of bytes that shape and type need.
    ///
    /// # Errors
    /// Those of [`TensorType::byte_len`].
    pub fn byte_len(&self) -> Result<u64, LayoutError> {
        self.kind.byte_len(&self.shape)
    }

    /// Returns true if the stored bytes are those that shape and type need, plus less than one alignment of padding.
    ///
    /// [`super::Reader::new`] accepts only such tensors. After [`super::Reader::inspect`], `false` means that the
    /// file was truncated, or that the type's number means another format in the program that wrote it.
    pub fn fits(&self) -> bool {
        self.byte_len().is_ok_and(|needed| {
            self.stored_len()
                .checked_sub(needed)
                .is_some_and(|padding| padding < self.alignment.into())
        })
    }
}

/// A tensor in the file's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Shape,
    pub(super) kind: TensorType,
    pub(super) offset: u64,
}

impl<'a> Listed<'a> {
    /// Smallest number of bytes of a description: the lengths of name and dimensions, type and offset.
    pub(super) const LEAST: u64 = 8 + 4 + 4 + 8;

    /// Reads the description of tensor number `tensor`.
    pub(super) fn read(cursor: &mut Cursor<'a>, tensor: u64) -> Result<Self, GgufError> {
        let layout = |error| GgufError::Layout { tensor, error };
        let name = cursor.string()?;
        let count = cursor.u32()?;
        let mut dims = [0; MAX_DIMS];
        let dims = usize::try_from(count)
            .ok()
            .and_then(|count| dims.get_mut(..count))
            .ok_or(layout(LayoutError::Dimensions {
                count: count.into(),
            }))?;
        for dim in dims.iter_mut() {
            *dim = cursor.u64()?;
        }
        Ok(Self {
            name,
            shape: Shape::new(dims).map_err(layout)?,
            kind: TensorType(cursor.u32()?),
            offset: cursor.u64()?,
        })
    }
}

/// Iterator over the tensors of a [`super::Reader`], in the file's order.
#[derive(Clone, Debug)]
pub struct Tensors<'a> {
    cursor: Cursor<'a>,
    /// Number of descriptions that the cursor has not read.
    unread: usize,
    /// The description read ahead: it marks the end of the previous tensor's data.
    ahead: Option<Listed<'a>>,
    data: &'a [u8],
    alignment: u32,
}

impl<'a> Tensors<'a> {
    pub(super) fn new(cursor: Cursor<'a>, count: usize, data: &'a [u8], alignment: u32) -> Self {
        let mut tensors = Self {
            cursor,
            unread: count,
            ahead: None,
            data,
            alignment,
        };
        tensors.ahead = tensors.read();
        tensors
    }

    fn read(&mut self) -> Option<Listed<'a>> {
        self.unread = self.unread.checked_sub(1)?;
        Listed::read(&mut self.cursor, 0).ok()
    }
}

impl<'a> Iterator for Tensors<'a> {
    type Item = TensorInfo<'a>;

    fn next(&mut self) -> Option<TensorInfo<'a>> {
        let listed = self.ahead.take()?;
        self.ahead = self.read();
        let next = self.ahead.as_ref();
        Some(TensorInfo::new(&listed, next, self.data, self.alignment))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self
            .unread
            .saturating_add(usize::from(self.ahead.is_some()));
        (left, Some(left))
    }
}

impl ExactSizeIterator for Tensors<'_> {}
