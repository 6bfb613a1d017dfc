//! The entries of a GGUF file that define a tokenizer, found in one pass, and its arrays, read in place.

use super::TokenizerError;
use super::lookup::MOST;
use crate::gguf::{Array, Reader, Value, ValueType};

macro_rules! keys {
    ($($name:ident = $key:literal),+ $(,)?) => {
        /// A key that is searched for.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Key { $($name),+ }

        const KEYS: &[Key] = &[$(Key::$name),+];

        impl Key {
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$name => $key),+ }
            }
        }
    };
}

keys! {
    Model = "tokenizer.ggml.model",
    Pre = "tokenizer.ggml.pre",
    Tokens = "tokenizer.ggml.tokens",
    TokenType = "tokenizer.ggml.token_type",
    Scores = "tokenizer.ggml.scores",
    Merges = "tokenizer.ggml.merges",
    Bos = "tokenizer.ggml.bos_token_id",
    Eos = "tokenizer.ggml.eos_token_id",
    Eot = "tokenizer.ggml.eot_token_id",
    Eom = "tokenizer.ggml.eom_token_id",
    Unknown = "tokenizer.ggml.unknown_token_id",
    Padding = "tokenizer.ggml.padding_token_id",
    AddBos = "tokenizer.ggml.add_bos_token",
    AddEos = "tokenizer.ggml.add_eos_token",
    AddSpacePrefix = "tokenizer.ggml.add_space_prefix",
}

/// The first value of each key, and the offset of its end in the file.
#[derive(Debug)]
pub(super) struct Entries<'a> {
    found: [Option<(Value<'a>, usize)>; KEYS.len()],
}

impl<'a> Entries<'a> {
    pub(super) fn new(reader: &Reader<'a>) -> Self {
        let mut found = [None; KEYS.len()];
        let mut metadata = reader.metadata();
        while let Some((name, value)) = metadata.next() {
            // A file has hundreds of entries; few begin like this.
            if !name.starts_with("tokenizer.ggml.") {
                continue;
            }
            if let Some(slot) = (KEYS.iter().zip(found.iter_mut()))
                .find_map(|(key, slot)| (key.name() == name).then_some(slot))
            {
                slot.get_or_insert((value, metadata.offset()));
            }
        }
        Self { found }
    }

    fn get(&self, key: Key) -> Option<(Value<'a>, usize)> {
        self.found.get(key as usize).copied().flatten()
    }

    /// Returns a text.
    pub(super) fn text(&self, key: Key) -> Result<Option<&'a str>, TokenizerError> {
        match self.get(key) {
            None => Ok(None),
            Some((Value::String(text), _)) => Ok(Some(text)),
            Some(_) => Err(TokenizerError::Type { key: key.name() }),
        }
    }

    /// Returns a boolean.
    pub(super) fn flag(&self, key: Key) -> Result<Option<bool>, TokenizerError> {
        match self.get(key) {
            None => Ok(None),
            Some((Value::Bool(flag), _)) => Ok(Some(flag)),
            Some(_) => Err(TokenizerError::Type { key: key.name() }),
        }
    }

    /// Returns an integer of at least 0, from any integer type.
    pub(super) fn number(&self, key: Key) -> Result<Option<u64>, TokenizerError> {
        let Some((value, _)) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_u64();
        number
            .map(Some)
            .ok_or(TokenizerError::Type { key: key.name() })
    }

    /// Returns an array whose elements have one of the types `kinds`.
    pub(super) fn array(
        &self,
        key: Key,
        kinds: &[ValueType],
    ) -> Result<Option<(Span, ValueType)>, TokenizerError> {
        let Some((value, end)) = self.get(key) else {
            return Ok(None);
        };
        let array = value
            .as_array()
            .filter(|array| kinds.contains(&array.kind()));
        let array = array.ok_or(TokenizerError::Type { key: key.name() })?;
        let span = Span::of(&array, end).ok_or(TokenizerError::Size { key: key.name() })?;
        Ok(Some((span, array.kind())))
    }
}

/// Place of an array's elements in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    len: usize,
    /// Number of elements.
    pub(super) count: usize,
}

impl Span {
    /// Returns the place of an array that ends at `end`; `None` beyond 4 GiB.
    fn of(array: &Array<'_>, end: usize) -> Option<Self> {
        let len = array.encoded_len()?;
        u32::try_from(len).ok()?;
        Some(Self {
            start: end.checked_sub(len)?,
            len,
            count: array.len(),
        })
    }

    /// Returns start, length and number of elements.
    pub(super) const fn parts(self) -> [usize; 3] {
        [self.start, self.len, self.count]
    }

    /// Returns the place with these [`Span::parts`]; no more elements than an index has room for.
    pub(super) fn from_parts([start, len, count]: [usize; 3]) -> Self {
        Self {
            start,
            len,
            count: count.min(MOST),
        }
    }

    /// Returns the elements in the file's encoding; none if `file` is shorter than before.
    pub(super) fn bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let from = file.get(self.start..).unwrap_or_default();
        from.get(..self.len).unwrap_or_default()
    }
}

/// Returns element `at` of an array of 32-bit numbers.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    let from = bytes.get(at.checked_mul(4)?..)?;
    from.first_chunk().copied()
}

/// Returns the string that begins at `offset` of an array of strings, and the offset of the next.
pub(super) fn string(bytes: &[u8], offset: usize) -> Option<(&[u8], usize)> {
    let from = bytes.get(offset..)?;
    let (len, text) = from.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let text = text.get(..len)?;
    Some((text, offset.checked_add(8)?.checked_add(len)?))
}
