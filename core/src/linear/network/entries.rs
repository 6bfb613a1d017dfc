//! Keys and tensors of one layer, by name.

use heapless::String;

use super::NetworkError;
use crate::gguf::{Reader, TensorInfo, TensorType, Value};
use crate::linear::Table;

/// Longest name: `tercet.network.`, a number of twenty digits, a dot, `output_scale`.
const NAME: usize = 48;

/// Entries of a layer in a file.
#[derive(Clone, Copy)]
pub(super) struct Entries<'f, 'a> {
    pub(super) file: &'f Reader<'a>,
    pub(super) layer: usize,
}

impl<'a> Entries<'_, 'a> {
    /// Returns the value of a key, if present.
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        self.file.get(&name(self.layer, "tercet.", key))
    }

    /// Returns the error for a key.
    pub(super) const fn bad(&self, key: &'static str, expected: &'static str) -> NetworkError {
        NetworkError::LayerKey {
            layer: self.layer,
            key,
            expected,
        }
    }

    /// Reads a number of at least 1 that fits `usize`.
    pub(super) fn count(&self, key: &'static str) -> Result<usize, NetworkError> {
        match self.get(key) {
            Some(Value::U32(count)) if count > 0 => usize::try_from(count).ok(),
            _ => None,
        }
        .ok_or(self.bad(key, "a u32 of at least 1"))
    }

    /// Reads a positive number.
    pub(super) fn positive(&self, key: &'static str) -> Result<f32, NetworkError> {
        positive(self.get(key)).ok_or(self.bad(key, "a positive finite f32"))
    }

    /// Returns a tensor, if present.
    pub(super) fn tensor(&self, tensor: &str) -> Option<TensorInfo<'a>> {
        self.file.tensor(&name(self.layer, "", tensor))
    }

    /// Returns the bytes of a tensor of that type and number of elements, or of one element if `one` allows it.
    ///
    /// Returns `None` if there is no such tensor; fails for a tensor of another type or length, with `expected` in
    /// the error.
    pub(super) fn values(
        &self,
        tensor: &'static str,
        kind: TensorType,
        rows: usize,
        one: bool,
        expected: &'static str,
    ) -> Result<Option<&'a [u8]>, NetworkError> {
        let Some(info) = self.tensor(tensor) else {
            return Ok(None);
        };
        let elements = info.shape.elements();
        let fits = elements == rows as u64 || (one && elements == 1);
        // A reader from `inspect` may lack bytes.
        let whole = info.byte_len() == Ok(info.data.len() as u64);
        if info.kind != kind || !fits || !whole {
            return Err(self.not(tensor, expected));
        }
        Ok(Some(info.data))
    }

    /// Like [`Entries::values`], for 32-bit values that may be missing.
    pub(super) fn words(
        &self,
        tensor: &'static str,
        kind: TensorType,
        rows: usize,
        one: bool,
        expected: &'static str,
    ) -> Result<Option<Table<'a>>, NetworkError> {
        let bytes = self.values(tensor, kind, rows, one, expected)?;
        Ok(bytes.map(Table::Bytes))
    }

    /// Returns the error for a tensor.
    pub(super) const fn not(&self, tensor: &'static str, expected: &'static str) -> NetworkError {
        NetworkError::Tensor {
            layer: self.layer,
            tensor,
            expected,
        }
    }

    /// Fails if the tensor is present.
    pub(super) fn refuse(&self, tensor: &'static str) -> Result<(), NetworkError> {
        let layer = self.layer;
        match self.tensor(tensor) {
            Some(_) => Err(NetworkError::Superfluous { layer, tensor }),
            None => Ok(()),
        }
    }
}

/// Returns the value if it is a positive finite f32.
pub(super) fn positive(value: Option<Value<'_>>) -> Option<f32> {
    match value {
        Some(Value::F32(value)) if value > 0.0 && value.is_finite() => Some(value),
        _ => None,
    }
}

/// Returns `prefix` + `network.3.part`, without `core::fmt`, which is larger than all of this module.
fn name(layer: usize, prefix: &str, part: &str) -> String<NAME> {
    let mut digits = [0; 20];
    let mut rest = layer;
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        used += 1;
        if rest == 0 {
            break;
        }
    }
    let mut name = String::new();
    // All of it fits; a truncated name would be in no file.
    let _ = name.push_str(prefix);
    let _ = name.push_str("network.");
    for &digit in digits.iter().skip(20 - used) {
        let _ = name.push(char::from(digit));
    }
    let _ = name.push('.');
    let _ = name.push_str(part);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_in_full() {
        assert_eq!(name(0, "", "weight"), "network.0.weight");
        assert_eq!(name(10, "tercet.", "rows"), "tercet.network.10.rows");
        let longest = name(usize::MAX, "tercet.", "output_scale");
        assert!(longest.ends_with(".output_scale") && longest.len() <= NAME);
    }
}
