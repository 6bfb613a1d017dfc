//! What an engine does with palettes.

use crate::number::Element;
use crate::palette::{Encoded, Layout, Output, Palette, PaletteError};

/// An engine that encodes, decodes and multiplies palettes; the contracts are those of [`crate::palette`]'s functions.
pub trait PaletteEngine {
    /// What can fail; the codec's refusals convert into it.
    type Error: From<PaletteError> + core::fmt::Display;

    /// Words of scratch that [`PaletteEngine::encode_palette`] works in: [`Layout::scratch_len`], or 0 for an engine with
    /// memory of its own.
    fn palette_scratch_len(&self, layout: &Layout) -> usize {
        layout.scratch_len()
    }

    /// As [`crate::palette::encode`], with [`PaletteEngine::palette_scratch_len`] words of `scratch` at least.
    fn encode_palette<T: Element>(
        &mut self,
        layout: &Layout,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, Self::Error>;

    /// As [`crate::palette::decode`].
    fn decode_palette(&mut self, palette: &Palette<'_>, out: &mut [f32])
    -> Result<(), Self::Error>;

    /// As [`crate::palette::matvec`].
    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), Self::Error>;
}
