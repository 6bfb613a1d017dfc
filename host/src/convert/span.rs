//! A part of a tensor, and what is said of it.

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

/// What a tensor lost in a codec.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Blocks that became zeros.
    pub(crate) flushed: u64,
    /// `None` for a source that is quantized itself.
    pub(crate) measures: Option<Measures>,
}

/// A quantizer's refusal about the part of a tensor that begins at value `first`.
pub(super) fn refuse(source: &Source<'_>, first: usize, error: QuantError) -> Error {
    let placed = match error {
        QuantError::NotFinite { index } => QuantError::NotFinite {
            index: index + first as u64,
        },
        other => other,
    };
    Error::tensor(source.path, source.tensor.name, placed)
}
