//! A part of a tensor, and its errors.

use tercet_core::quant::{Measures, QuantError};

use crate::Error;
use crate::source::Source;

/// A tensor, the first value of a part of it, and the part's length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a, 's> {
    pub(super) source: &'a Source<'s>,
    pub(super) first: usize,
    pub(super) len: usize,
}

impl Span<'_, '_> {
    pub(super) const fn end(&self) -> usize {
        self.first + self.len
    }
}

/// The loss of a tensor in a codec.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Blocks that became zeros.
    pub(crate) flushed: u64,
    /// `None` for a source that is itself quantized.
    pub(crate) measures: Option<Measures>,
}

/// Returns a quantizer's error about the part of a tensor that begins at value `first`.
pub(super) fn refuse(source: &Source<'_>, first: usize, error: QuantError) -> Error {
    let placed = match error {
        QuantError::NotFinite { index } => QuantError::NotFinite {
            index: index + first as u64,
        },
        other => other,
    };
    Error::tensor(source.path, source.tensor.name, placed)
}
