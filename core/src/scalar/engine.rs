//! The reference engine as an [`crate::engine`] value.

use super::Tensor;
use crate::block::{self, BlockError, Encoded, Format};
use crate::engine::{BlockEngine, Output, PaletteEngine, QuantizeEngine};
use crate::number::Element;
use crate::palette::{self, Layout, Palette, PaletteError};
use crate::quant::{Groups, QuantError, Rule, ScaleRule};

/// The reference engine: plain loops, no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scalar;

impl QuantizeEngine for Scalar {
    type Error = QuantError;
    type Tensor<'a, T: Element> = Tensor<'a, T>;

    fn tensor<'a, T: Element>(
        &'a mut self,
        values: &'a [T],
        groups: Groups,
        out: Output<'a>,
    ) -> Result<Tensor<'a, T>, QuantError> {
        Tensor::new(values, groups, out.codes, out.scales, out.zero_points)
    }
}

impl BlockEngine for Scalar {
    type Error = BlockError;

    fn encode<T: Element>(
        &mut self,
        format: Format,
        rule: Rule,
        scale: ScaleRule,
        values: &[T],
        out: &mut [u8],
    ) -> Result<Encoded, BlockError> {
        block::encode(format, rule, scale, values, out)
    }

    fn decode(&mut self, format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
        block::decode(format, bytes, out)
    }

    fn dot(
        &mut self,
        format: Format,
        bytes: &[u8],
        x: &[i8],
        x_scale: f32,
    ) -> Result<f32, BlockError> {
        block::dot(format, bytes, x, x_scale)
    }
}

impl PaletteEngine for Scalar {
    type Error = PaletteError;

    fn encode<T: Element>(
        &mut self,
        layout: &Layout,
        values: &[T],
        importances: &[u32],
        out: palette::Output<'_>,
        scratch: &mut [u64],
    ) -> Result<palette::Encoded, PaletteError> {
        palette::encode(layout, values, importances, out, scratch)
    }

    fn decode(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), PaletteError> {
        palette::decode(palette, out)
    }

    fn matvec(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        palette::matvec(palette, x, x_scale, out)
    }
}
