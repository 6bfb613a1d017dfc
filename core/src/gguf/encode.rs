//! Encodes values as in a file and writes them to a sink.

use super::array::{Array, Items};
use super::sink::Sink;
use super::value::{Value, ValueType};
use super::{MAX_DEPTH, align};

/// A sink, and the number of bytes written to it.
#[derive(Debug)]
pub(super) struct Counted<S> {
    pub(super) sink: S,
    pub(super) len: u64,
}

impl<S: Sink> Counted<S> {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        self.sink.write(bytes)?;
        self.len = self.len.saturating_add(bytes.len() as u64);
        Ok(())
    }

    pub(super) fn u32(&mut self, value: u32) -> Result<(), S::Error> {
        self.write(&value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, value: u64) -> Result<(), S::Error> {
        self.write(&value.to_le_bytes())
    }

    pub(super) fn string(&mut self, text: &str) -> Result<(), S::Error> {
        self.u64(text.len() as u64)?;
        self.write(text.as_bytes())
    }

    /// Writes zeros up to the next multiple of `alignment`.
    pub(super) fn pad(&mut self, alignment: u32) -> Result<(), S::Error> {
        let zeros = [0; 32];
        let mut left = align(self.len, alignment).saturating_sub(self.len);
        while left > 0 {
            let piece = left.min(zeros.len() as u64);
            self.write(zeros.get(..piece as usize).unwrap_or_default())?;
            left = left.saturating_sub(piece);
        }
        Ok(())
    }

    /// Writes a value without its type. The recursion ends, since the caller has checked [`nests_within_depth`].
    pub(super) fn value(&mut self, value: &Value<'_>) -> Result<(), S::Error> {
        match *value {
            Value::U8(value) => self.write(&value.to_le_bytes()),
            Value::I8(value) => self.write(&value.to_le_bytes()),
            Value::U16(value) => self.write(&value.to_le_bytes()),
            Value::I16(value) => self.write(&value.to_le_bytes()),
            Value::U32(value) => self.write(&value.to_le_bytes()),
            Value::I32(value) => self.write(&value.to_le_bytes()),
            Value::F32(value) => self.write(&value.to_le_bytes()),
            Value::Bool(value) => self.write(&[value.into()]),
            Value::String(text) => self.string(text),
            Value::Array(array) => self.array(&array),
            Value::U64(value) => self.write(&value.to_le_bytes()),
            Value::I64(value) => self.write(&value.to_le_bytes()),
            Value::F64(value) => self.write(&value.to_le_bytes()),
        }
    }

    fn array(&mut self, array: &Array<'_>) -> Result<(), S::Error> {
        self.u32(array.kind().id())?;
        self.u64(array.len() as u64)?;
        match array.items {
            Items::Encoded { bytes, .. } | Items::U8(bytes) => self.write(bytes),
            _ => array.iter().try_for_each(|value| self.value(&value)),
        }
    }
}

/// Returns true if a value contains at most [`MAX_DEPTH`] nested arrays.
pub(super) fn nests_within_depth(value: &Value<'_>) -> bool {
    match value {
        Value::Array(array) => nests_within(array, MAX_DEPTH),
        _ => true,
    }
}

fn nests_within(array: &Array<'_>, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else {
        return false;
    };
    array.kind() != ValueType::Array
        || array
            .iter()
            .filter_map(|value| value.as_array())
            .all(|inner| nests_within(&inner, below))
}
