//! The tensors of a file.

use super::cursor::Cursor;
use super::{GgufError, LayoutError, MAX_DIMS, Shape, TensorType};

/// A tensor: its description and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct TensorInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its dimensions, row first.
    pub shape: Shape,
    /// How its elements are stored.
    pub kind: TensorType,
    /// Where its data begins, in bytes from the start of the data section.
    pub offset: u64,
    /// Its data: the bytes that shape and type give. Where these are not known or not all there (possible only
    /// with [`super::Reader::inspect`]): all of [`TensorInfo::stored`].
    pub data: &'a [u8],
    /// The bytes from its offset to the next tensor's or to the end of the file, padding included.
    pub stored: &'a [u8],
    alignment: u32,
}

impl<'a> TensorInfo<'a> {
    /// Cuts the tensor's bytes out of the data section: they end where the next tensor's begin.
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

    /// Bytes from its offset to the next tensor's or to the end of the file, padding included.
    pub const fn stored_len(&self) -> u64 {
        self.stored.len() as u64
    }

    /// Bytes that shape and type give.
    ///
    /// # Errors
    /// As [`TensorType::byte_len`].
    pub fn byte_len(&self) -> Result<u64, LayoutError> {
        self.kind.byte_len(&self.shape)
    }

    /// Whether the bytes stored are those that shape and type give, and less than one alignment of padding.
    ///
    /// [`super::Reader::new`] takes only such tensors. After [`super::Reader::inspect`], `false` says that the
    /// file was cut short or that the type's number means another format to the program that wrote it.
    pub fn fits(&self) -> bool {
        self.byte_len().is_ok_and(|needed| {
            self.stored_len()
                .checked_sub(needed)
                .is_some_and(|padding| padding < self.alignment.into())
        })
    }
}

/// A tensor as the file lists it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Shape,
    pub(super) kind: TensorType,
    pub(super) offset: u64,
}

impl<'a> Listed<'a> {
    /// The fewest bytes a description takes: the lengths of name and dimensions, type and offset.
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
    /// Descriptions that the cursor has not read.
    unread: usize,
    /// The description read ahead: it tells where the data of the tensor before ends.
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
