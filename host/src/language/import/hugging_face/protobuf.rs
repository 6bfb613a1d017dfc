//! The wire format of protocol buffers: fields by number, as far as SentencePiece models use them.

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'a> {
    /// An integer, a boolean or a value of an enumeration.
    Integer(u64),
    /// Four bytes, little-endian.
    Word(u32),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// Eight bytes, which are not used here.
    Long,
}

impl<'a> Field<'a> {
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) const fn integer(self) -> Option<u64> {
        match self {
            Self::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    pub(super) const fn float(self) -> Option<f32> {
        match self {
            Self::Word(word) => Some(f32::from_bits(word)),
            _ => None,
        }
    }
}

/// The fields of a message in order, each with its number; after invalid data comes an error as the last item.
#[derive(Clone, Debug)]
pub(super) struct Message<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) const fn new(all: &'a [u8]) -> Self {
        Self { all, rest: all }
    }

    /// Returns the last field with that number, which is the valid one.
    pub(super) fn value(&self, number: u64) -> Result<Option<Field<'a>>, String> {
        let mut found = None;
        for field in self.clone() {
            let (at, field) = field?;
            if at == number {
                found = Some(field);
            }
        }
        Ok(found)
    }

    /// Reads an integer with seven bits per byte, the lowest first.
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Integer(self.varint()?),
            1 => {
                self.take(8)?;
                Field::Long
            }
            2 => {
                let len = self.varint()?;
                Field::Bytes(self.take(len)?)
            }
            5 => Field::Word(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((tag >> 3, field))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u64, Field<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.all.len() - self.rest.len();
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| format!("no field of a message begins at its byte {at}")))
    }
}
