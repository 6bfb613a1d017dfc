//! Reads little-endian fields one after the other, never past the end.

use super::GgufError;

/// The unread rest of a file and its offset from the file's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`, which begin `offset` bytes into the file.
    pub(super) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }

    /// Returns the number of bytes from the file's start.
    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the unread bytes.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], GgufError> {
        let split = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = split else {
            return Err(GgufError::Truncated {
                offset: self.offset,
                needed: len,
            });
        };
        self.rest = rest;
        // Cannot wrap: the bytes are in memory, so their offsets fit.
        self.offset = self.offset.wrapping_add(taken.len());
        Ok(taken)
    }

    /// Returns the next `N` bytes as an array.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let truncated = GgufError::Truncated {
            offset: self.offset,
            needed: N as u64,
        };
        let taken = self.take(N as u64)?;
        taken.first_chunk().copied().ok_or(truncated)
    }

    pub(super) fn u32(&mut self) -> Result<u32, GgufError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, GgufError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Returns the bytes of a string: a 64-bit length, then as many bytes.
    pub(super) fn string_bytes(&mut self) -> Result<&'a [u8], GgufError> {
        let offset = self.offset;
        let len = self.u64()?;
        if len > self.rest.len() as u64 {
            return Err(GgufError::StringLength { offset, len });
        }
        self.take(len)
    }

    /// Returns a string.
    pub(super) fn string(&mut self) -> Result<&'a str, GgufError> {
        let bytes = self.string_bytes()?;
        let start = self.offset.wrapping_sub(bytes.len());
        core::str::from_utf8(bytes).map_err(|error| GgufError::Utf8 {
            offset: start.wrapping_add(error.valid_up_to()),
        })
    }
}
