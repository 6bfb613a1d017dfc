//! Arrays of metadata values: read in place, or created from a slice.

use super::cursor::Cursor;
use super::value::{Value, ValueType};

/// An array of elements of one type.
///
/// From a file, it borrows the encoded elements. `Array::from` borrows a slice of numbers, booleans, strings or
/// arrays for writing. Two arrays are equal if their element types and elements are.
///
/// ```
/// use tercet_core::gguf::{Array, Value, ValueType};
///
/// let tokens = Array::from(&["<s>", "</s>"][..]);
/// assert_eq!((tokens.kind(), tokens.len()), (ValueType::String, 2));
/// assert_eq!(tokens.iter().nth(1), Some(Value::String("</s>")));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    pub(super) items: Items<'a>,
}

macro_rules! items {
    ($($variant:ident($type:ty) => $kind:ident),+ $(,)?) => {
        /// Storage of the elements.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Items<'a> {
            /// `len` elements in the file's encoding, checked when the file was read.
            Encoded { kind: ValueType, len: usize, bytes: &'a [u8] },
            $($variant(&'a [$type]),)+
        }

        impl<'a> Array<'a> {
            /// Returns the type of the elements.
            pub const fn kind(&self) -> ValueType {
                match self.items {
                    Items::Encoded { kind, .. } => kind,
                    $(Items::$variant(_) => ValueType::$kind,)+
                }
            }

            /// Returns the number of elements.
            pub const fn len(&self) -> usize {
                match self.items {
                    Items::Encoded { len, .. } => len,
                    $(Items::$variant(items) => items.len(),)+
                }
            }
        }

        impl<'a> Iterator for Elements<'a> {
            type Item = Value<'a>;

            fn next(&mut self) -> Option<Value<'a>> {
                self.left = self.left.checked_sub(1)?;
                match &mut self.items {
                    // The reader checked depth and content; only the bounds are checked again.
                    Items::Encoded { kind, bytes, .. } => {
                        let mut cursor = Cursor::new(bytes, 0);
                        let value = Value::read::<false>(&mut cursor, *kind, 0).ok()?;
                        *bytes = cursor.rest();
                        Some(value)
                    }
                    $(Items::$variant(items) => {
                        let (first, rest) = items.split_first()?;
                        *items = rest;
                        Some(Value::$kind(*first))
                    })+
                }
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }
        }

        $(impl<'a> From<&'a [$type]> for Array<'a> {
            fn from(items: &'a [$type]) -> Self {
                Self { items: Items::$variant(items) }
            }
        })+
    };
}

items!(
    U8(u8) => U8,
    I8(i8) => I8,
    U16(u16) => U16,
    I16(i16) => I16,
    U32(u32) => U32,
    I32(i32) => I32,
    F32(f32) => F32,
    Bool(bool) => Bool,
    String(&'a str) => String,
    Array(Array<'a>) => Array,
    U64(u64) => U64,
    I64(i64) => I64,
    F64(f64) => F64,
);

impl<'a> Array<'a> {
    /// Creates an array of elements in the file's encoding, which the caller has checked.
    pub(super) const fn encoded(kind: ValueType, len: usize, bytes: &'a [u8]) -> Self {
        Self {
            items: Items::Encoded { kind, len, bytes },
        }
    }

    /// Returns the number of bytes of the elements in their file; `None` for an array created from a slice.
    pub(crate) const fn encoded_len(&self) -> Option<usize> {
        match self.items {
            Items::Encoded { bytes, .. } => Some(bytes.len()),
            _ => None,
        }
    }

    /// Returns true if there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements in order. Skipping an element that is an array takes time linear in its strings and
    /// arrays.
    pub const fn iter(&self) -> Elements<'a> {
        Elements {
            items: self.items,
            left: self.len(),
        }
    }

    /// Returns the elements of an array of strings; none for other types.
    pub fn strings(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.iter().filter_map(|value| value.as_str())
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a> IntoIterator for &Array<'a> {
    type Item = Value<'a>;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

/// Iterator over the elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    items: Items<'a>,
    left: usize,
}

impl ExactSizeIterator for Elements<'_> {}
