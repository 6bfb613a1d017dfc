//! What an engine does with palettes.

use crate::number::Element;
use crate::palette::{Encoded, Layout, Output, Palette, PaletteError};

/// An engine that encodes, decodes and multiplies palettes; the contracts are those of [`crate::palette`]'s functions.
pub trait PaletteEngine {
    /// What can fail; the codec's refusals convert into it.
    type Error: From<PaletteError> + core::fmt::Display;

    /// As [`crate::palette::encode`]; an engine with memory of its own may leave `scratch` alone once it has checked it.
    fn encode<T: Element>(
        &mut self,
        layout: &Layout,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, Self::Error>;

    /// As [`crate::palette::decode`].
    fn decode(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), Self::Error>;

    /// As [`crate::palette::matvec`].
    fn matvec(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), Self::Error>;
}
