//! The engine trait for palettes.

use crate::number::Element;
use crate::palette::{Encoded, IndexMatrix, Output, Palette, PaletteError};

/// An engine that encodes, decodes and multiplies palettes; the contracts are those of [`crate::palette`]'s functions.
pub trait PaletteEngine {
    /// The engine's error; codec errors convert into it.
    type Error: From<PaletteError> + core::fmt::Display;

    /// Returns the number of words of scratch for [`PaletteEngine::encode_palette`]: [`IndexMatrix::scratch_len`], or 0
    /// for an engine with its own memory.
    fn palette_scratch_len(&self, layout: &IndexMatrix) -> usize {
        layout.scratch_len()
    }

    /// Same contract as [`crate::palette::encode`], with at least [`PaletteEngine::palette_scratch_len`] words of
    /// `scratch`.
    fn encode_palette<T: Element>(
        &mut self,
        layout: &IndexMatrix,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, Self::Error>;

    /// Same contract as [`crate::palette::decode`].
    fn decode_palette(&mut self, palette: &Palette<'_>, out: &mut [f32])
    -> Result<(), Self::Error>;

    /// Same contract as [`crate::palette::matvec`].
    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), Self::Error>;
}
