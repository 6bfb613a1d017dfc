//! Metadata values and their types.

use super::array::Array;
use super::cursor::Cursor;
use super::{GgufError, MAX_DEPTH};

/// The type of a metadata value or of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u32)]
pub enum ValueType {
    /// Unsigned, 8 bits.
    U8 = 0,
    /// Two's complement, 8 bits.
    I8 = 1,
    /// Unsigned, 16 bits.
    U16 = 2,
    /// Two's complement, 16 bits.
    I16 = 3,
    /// Unsigned, 32 bits.
    U32 = 4,
    /// Two's complement, 32 bits.
    I32 = 5,
    /// IEEE 754 binary32.
    F32 = 6,
    /// One byte, 0 or 1.
    Bool = 7,
    /// UTF-8, after its length in 64 bits.
    String = 8,
    /// Elements of one type, after that type and their number.
    Array = 9,
    /// Unsigned, 64 bits.
    U64 = 10,
    /// Two's complement, 64 bits.
    I64 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
}

impl ValueType {
    /// Returns the type's number in the file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// Returns the type with this number; `None` from 13 on.
    pub const fn from_id(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::String,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Returns the number of bytes of a value; `None` for strings and arrays, whose sizes differ.
    pub const fn width(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::String | Self::Array => None,
        }
    }

    /// Returns the smallest number of bytes of a value: a string's length, an array's type and length.
    pub(super) const fn least(self) -> u64 {
        match self {
            Self::String => 8,
            Self::Array => 12,
            _ => match self.width() {
                Some(width) => width as u64,
                None => 1,
            },
        }
    }

    /// Reads a type's number.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, GgufError> {
        let offset = cursor.offset();
        let id = cursor.u32()?;
        Self::from_id(id).ok_or(GgufError::ValueType { offset, id })
    }
}

/// A metadata value. Two are equal if their types and values are; floats compare like floats.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Unsigned, 8 bits.
    U8(u8),
    /// Signed, 8 bits.
    I8(i8),
    /// Unsigned, 16 bits.
    U16(u16),
    /// Signed, 16 bits.
    I16(i16),
    /// Unsigned, 32 bits.
    U32(u32),
    /// Signed, 32 bits.
    I32(i32),
    /// 32-bit float.
    F32(f32),
    /// Boolean.
    Bool(bool),
    /// Text.
    String(&'a str),
    /// Elements of one type.
    Array(Array<'a>),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed, 64 bits.
    I64(i64),
    /// 64-bit float.
    F64(f64),
}

impl<'a> Value<'a> {
    /// Returns the type.
    pub const fn kind(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// Returns the text of a string; `None` for other types.
    pub const fn as_str(&self) -> Option<&'a str> {
        match *self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the elements of an array; `None` for other types.
    pub const fn as_array(&self) -> Option<Array<'a>> {
        match *self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Returns an integer of any width; `None` for negative ones and other types.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::U64(value) => Some(value),
            Self::I8(value) => value.try_into().ok(),
            Self::I16(value) => value.try_into().ok(),
            Self::I32(value) => value.try_into().ok(),
            Self::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// Reads a value. With `CHECK`, everything in it is checked too; without, only what keeps reads inside the file.
    /// `depth` is the number of arrays around it.
    pub(super) fn read<const CHECK: bool>(
        cursor: &mut Cursor<'a>,
        kind: ValueType,
        depth: usize,
    ) -> Result<Self, GgufError> {
        Ok(match kind {
            ValueType::U8 => Self::U8(u8::from_le_bytes(cursor.array()?)),
            ValueType::I8 => Self::I8(i8::from_le_bytes(cursor.array()?)),
            ValueType::U16 => Self::U16(u16::from_le_bytes(cursor.array()?)),
            ValueType::I16 => Self::I16(i16::from_le_bytes(cursor.array()?)),
            ValueType::U32 => Self::U32(cursor.u32()?),
            ValueType::I32 => Self::I32(i32::from_le_bytes(cursor.array()?)),
            ValueType::F32 => Self::F32(f32::from_le_bytes(cursor.array()?)),
            ValueType::Bool => Self::Bool(read_bool(cursor)?),
            ValueType::String => Self::String(cursor.string()?),
            ValueType::Array => Self::Array(read_array::<CHECK>(cursor, depth)?),
            ValueType::U64 => Self::U64(cursor.u64()?),
            ValueType::I64 => Self::I64(i64::from_le_bytes(cursor.array()?)),
            ValueType::F64 => Self::F64(f64::from_le_bytes(cursor.array()?)),
        })
    }
}

fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool, GgufError> {
    let offset = cursor.offset();
    match cursor.array()? {
        [0] => Ok(false),
        [1] => Ok(true),
        [value] => Err(GgufError::Bool { offset, value }),
    }
}

/// Reads an array's header and skips its elements. The recursion ends at [`MAX_DEPTH`].
fn read_array<'a, const CHECK: bool>(
    cursor: &mut Cursor<'a>,
    depth: usize,
) -> Result<Array<'a>, GgufError> {
    let start = cursor.offset();
    if depth >= MAX_DEPTH {
        return Err(GgufError::Depth { offset: start });
    }
    let kind = ValueType::read(cursor)?;
    let offset = cursor.offset();
    let claimed = cursor.u64()?;
    // Before any loop relies on the length: that many elements must fit into the rest.
    let fits = claimed
        .checked_mul(kind.least())
        .is_some_and(|bytes| bytes <= cursor.rest().len() as u64);
    let Some(len) = usize::try_from(claimed).ok().filter(|_| fits) else {
        return Err(GgufError::ArrayLength {
            offset,
            len: claimed,
        });
    };
    let mut end = *cursor;
    match kind.width() {
        Some(_) if CHECK && kind == ValueType::Bool => {
            for _ in 0..len {
                read_bool(&mut end)?;
            }
        }
        Some(width) => {
            end.take((len as u64).saturating_mul(width as u64))?;
        }
        None if kind == ValueType::String => {
            for _ in 0..len {
                if CHECK {
                    end.string()?;
                } else {
                    end.string_bytes()?;
                }
            }
        }
        None => {
            for _ in 0..len {
                read_array::<CHECK>(&mut end, depth.saturating_add(1))?;
            }
        }
    }
    let items = cursor.take(end.offset().wrapping_sub(cursor.offset()) as u64)?;
    Ok(Array::encoded(kind, len, items))
}

macro_rules! from_scalars {
    ($($type:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })+
    };
}

from_scalars!(
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32,
    bool => Bool, u64 => U64, i64 => I64, f64 => F64,
);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(text)
    }
}

impl<'a, T> From<&'a [T]> for Value<'a>
where
    Array<'a>: From<&'a [T]>,
{
    fn from(items: &'a [T]) -> Self {
        Self::Array(items.into())
    }
}
