//! GGUF files written field by field, with no check at all: what the reader is tested against.

/// A file in the making.
#[derive(Clone, Default)]
pub(crate) struct Raw(pub(crate) Vec<u8>);

impl Raw {
    /// Magic, version and the two counts.
    pub(crate) fn new(version: u32, tensors: u64, entries: u64) -> Self {
        Self(b"GGUF".to_vec())
            .u32(version)
            .u64(tensors)
            .u64(entries)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A length and that many bytes.
    pub(crate) fn string(self, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        self.u64(text.len() as u64).bytes(text)
    }

    /// A key and the number of its value's type; the value follows.
    pub(crate) fn key(self, key: &str, kind: u32) -> Self {
        self.string(key).u32(kind)
    }

    /// `general.alignment` as a `u32`.
    pub(crate) fn alignment(self, value: u32) -> Self {
        self.key("general.alignment", 4).u32(value)
    }

    /// A tensor's description.
    pub(crate) fn tensor(
        self,
        name: impl AsRef<[u8]>,
        dims: &[u64],
        kind: u32,
        offset: u64,
    ) -> Self {
        let raw = self.string(name).u32(dims.len() as u32);
        let raw = dims.iter().fold(raw, |raw, &dim| raw.u64(dim));
        raw.u32(kind).u64(offset)
    }

    /// Zeros up to a multiple of `alignment`.
    pub(crate) fn pad(mut self, alignment: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0);
        self
    }

    /// `len` bytes of data.
    pub(crate) fn data(mut self, len: usize) -> Self {
        self.0.extend((0..len).map(|i| i as u8));
        self
    }
}
