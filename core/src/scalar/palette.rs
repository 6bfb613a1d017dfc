//! Palettes with the functions of [`crate::palette`].

use super::Scalar;
use crate::engine::PaletteEngine;
use crate::number::Element;
use crate::palette::{self, Encoded, IndexMatrix, Output, Palette, PaletteError};

impl PaletteEngine for Scalar {
    type Error = PaletteError;

    fn encode_palette<T: Element>(
        &mut self,
        layout: &IndexMatrix,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, PaletteError> {
        palette::encode(layout, values, importances, out, scratch)
    }

    fn decode_palette(
        &mut self,
        palette: &Palette<'_>,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        palette::decode(palette, out)
    }

    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        palette::matvec(palette, x, x_scale, out)
    }
}
