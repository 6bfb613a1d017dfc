//! Destinations of a writer's bytes.

/// A destination that takes bytes from front to back.
///
/// A writer sends fields as small as four bytes: use a buffer before a file.
pub trait Sink {
    /// Reason why a write failed.
    type Error;

    /// Takes all of `bytes`.
    ///
    /// # Errors
    /// If it cannot take all of them. The bytes taken before remain.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

impl<S: Sink + ?Sized> Sink for &mut S {
    type Error = S::Error;

    fn write(&mut self, bytes: &[u8]) -> Result<(), S::Error> {
        (**self).write(bytes)
    }
}

/// The slice of a [`SliceSink`] has no space for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Full {
    /// Number of bytes that would have been needed so far.
    pub needed: usize,
}

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the slice is full; {} bytes are needed so far",
            self.needed
        )
    }
}

impl core::error::Error for Full {}

/// A [`Sink`] that fills a slice.
#[derive(Debug)]
pub struct SliceSink<'a> {
    slice: &'a mut [u8],
    len: usize,
}

impl<'a> SliceSink<'a> {
    /// Creates a sink at the front of `slice`.
    pub const fn new(slice: &'a mut [u8]) -> Self {
        Self { slice, len: 0 }
    }

    /// Returns the number of bytes written so far.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if nothing is written yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes written so far.
    pub fn written(&self) -> &[u8] {
        self.slice.get(..self.len).unwrap_or_default()
    }
}

impl Sink for SliceSink<'_> {
    type Error = Full;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let needed = self.len.saturating_add(bytes.len());
        let full = Full { needed };
        let room = self.slice.get_mut(self.len..needed).ok_or(full)?;
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.len = needed;
        Ok(())
    }
}
