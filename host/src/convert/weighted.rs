//! A tensor with the importance of each of its values.

use tercet_core::palette::PaletteError;

use super::importance::Importance;
use crate::Error;
use crate::parallel::palette::{Matrix, moved};
use crate::source::Source;

/// A tensor from value `first` on, with its importances, readable by any thread.
pub(super) struct WeightedTensor<'a, 's> {
    pub(super) source: &'a Source<'s>,
    pub(super) importance: Option<&'a Importance<'a>>,
    pub(super) first: usize,
}

impl WeightedTensor<'_, '_> {
    /// Converts the error of the matrix to one of its tensor.
    pub(super) fn refuse(&self, error: Refusal) -> Error {
        match error {
            Refusal::Palette(error) => Error::tensor(
                self.source.path,
                self.source.tensor.name,
                moved(error, self.first),
            ),
            Refusal::Host(error) => error,
        }
    }
}

/// The reason why work on a tensor stops.
pub(super) enum Refusal {
    Palette(PaletteError),
    Host(Error),
}

impl From<PaletteError> for Refusal {
    fn from(error: PaletteError) -> Self {
        Self::Palette(error)
    }
}

impl Matrix for WeightedTensor<'_, '_> {
    type Value = f32;
    type Error = Refusal;

    fn values<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<f32>,
    ) -> Result<&'a [f32], Refusal> {
        (self.source)
            .view(self.first + first, len, buffer)
            .map_err(Refusal::Host)
    }

    fn importances<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<u32>,
    ) -> Result<&'a [u32], Refusal> {
        let Some(importance) = self.importance else {
            return Ok(&[]);
        };
        buffer.resize(len, 0);
        importance
            .read(self.first + first, buffer)
            .map_err(Refusal::Host)?;
        Ok(buffer)
    }
}
