//! Palettes on several devices: each device has some groups of rows.

use std::ops::Range;

use tercet_core::engine::{PaletteEngine, Refused};
use tercet_core::number::Element;
use tercet_core::palette::{self, Encoded, IndexMatrix, Output, Palette, PaletteError};

use super::{DevicePalette, check_dot, expect, layout_of, part, rows_of};
use crate::engine::cudas::cut;
use crate::engine::{Cuda, CudaError, Cudas, DeviceBuffer};

/// A palette over several devices, each of which keeps some groups of rows.
#[derive(Debug)]
pub struct CudasPalette {
    layout: IndexMatrix,
    parts: Vec<DevicePalette>,
}

impl CudasPalette {
    /// Returns rows, columns, groups and bits.
    pub const fn layout(&self) -> IndexMatrix {
        self.layout
    }

    /// Returns the number of devices that have rows: the first ones of the engine.
    pub const fn devices(&self) -> usize {
        self.parts.len()
    }
}

/// Resident palettes. Outputs go to the host.
impl Cudas {
    /// Copies a palette to the devices, to each its share of the groups.
    ///
    /// # Errors
    /// Those of [`Palette::check`]; [`CudaError::OnDevice`] with [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
    pub fn palette(&mut self, palette: &Palette<'_>) -> Result<CudasPalette, CudaError> {
        palette.check()?;
        let layout = palette.layout;
        let shares = self.shares(layout.groups(), 1, layout.group_len());
        let parts = self.each(shares, |cuda, groups| {
            cuda.palette(&part(palette, &groups)?)
        })?;
        Ok(CudasPalette { layout, parts })
    }

    /// Writes `fl(entry · scale)` for every value, row-major, as [`tercet_core::palette::decode`].
    ///
    /// # Errors
    /// [`PaletteError::Length`] unless `out` has one element per value; [`CudaError::OnDevice`] with
    /// [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Launch`], [`CudaError::Driver`], and with
    /// [`CudaError::Argument`] for a palette of another engine.
    pub fn decode_resident_palette(
        &mut self,
        palette: &CudasPalette,
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        let layout = palette.layout;
        expect(layout.values(), out.len())?;
        self.on_parts(palette, out, layout.cols(), |cuda, part, there| {
            cuda.decode_resident_palette(part, there)
        })
    }

    /// Multiplies a palette with int8 activations that share one scale; the result has one number per row, as
    /// [`tercet_core::palette::matvec`]. Activations are copied to every device.
    ///
    /// # Errors
    /// [`PaletteError::Length`] unless `x` has a value per column and `out` has room for one per row;
    /// [`PaletteError::DotLength`]; [`CudaError::OnDevice`] as [`Cudas::decode_resident_palette`].
    pub fn multiply_resident_palette(
        &mut self,
        palette: &CudasPalette,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        let layout = palette.layout;
        expect(layout.cols(), x.len())?;
        expect(layout.rows(), out.len())?;
        check_dot(x.len())?;
        self.on_parts(palette, out, 1, |cuda, part, there| {
            let x = cuda.palette_activations(x)?;
            cuda.multiply_resident_palette(part, &x, x_scale, there)
        })
    }

    /// Lets each device compute its rows' part of `out`, with `each` elements per row.
    fn on_parts(
        &mut self,
        palette: &CudasPalette,
        out: &mut [f32],
        each: usize,
        work: impl Fn(&mut Cuda, &DevicePalette, &mut DeviceBuffer<f32>) -> Result<(), CudaError> + Sync,
    ) -> Result<(), CudaError> {
        let (expected, found) = (palette.parts.len(), self.devices.len());
        if expected > found {
            return Err(CudaError::Length { expected, found });
        }
        let lengths = palette.parts.iter().map(|part| part.layout().rows() * each);
        let outs = cut(out, lengths);
        self.each(palette.parts.iter().zip(outs), |cuda, (part, out)| {
            let mut there = cuda.room(out.len())?;
            work(cuda, part, &mut there)?;
            cuda.read(&there, out)
        })?;
        Ok(())
    }
}

impl Cudas {
    /// Returns shares of whole groups, the rows of each, and their part of `out` with `each` elements per row.
    fn groups<'o, T>(
        &self,
        layout: &IndexMatrix,
        out: &'o mut [T],
        each: usize,
    ) -> Vec<(Range<usize>, &'o mut [T])> {
        let shares = self.shares(layout.groups(), 1, layout.group_len());
        let rows = shares.iter().map(|groups| rows_of(layout, groups).len());
        let outs = cut(out, rows.map(|rows| rows * each));
        shares.into_iter().zip(outs).collect()
    }
}

/// Shares consist of whole groups.
impl PaletteEngine for Cudas {
    type Error = CudaError;

    /// The host side of each device has its own scratch.
    fn palette_scratch_len(&self, _: &IndexMatrix) -> usize {
        0
    }

    fn encode_palette<T: Element>(
        &mut self,
        layout: &IndexMatrix,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        _: &mut [u64],
    ) -> Result<Encoded, CudaError> {
        palette::check(layout, values, importances, &out)?;
        let entries = layout.width().entries();
        let shares = self.groups(layout, out.indices, layout.row_bytes());
        let lengths: Vec<_> = shares.iter().map(|(groups, _)| groups.len()).collect();
        let codebooks = cut(out.codebooks, lengths.iter().map(|groups| groups * entries));
        let scales = cut(out.scales, lengths.iter().copied());
        let shares = shares.into_iter().zip(codebooks).zip(scales);
        let done = self.each(shares, |cuda, (((groups, indices), codebooks), scales)| {
            let rows = rows_of(layout, &groups);
            let among = rows.start * layout.cols()..rows.end * layout.cols();
            let importances = importances.get(among.clone()).unwrap_or_default();
            let out = Output {
                indices,
                codebooks,
                scales,
            };
            let first = among.start as u64;
            let part = layout_of(layout, &groups)?;
            let mut scratch = vec![0; part.scratch_len()];
            let values = &values[among];
            let done =
                PaletteEngine::encode_palette(cuda, &part, values, importances, out, &mut scratch);
            done.map_err(|error| match error {
                CudaError::Refused(Refused::Palette(PaletteError::NotFinite { index })) => {
                    let index = first + index;
                    PaletteError::NotFinite { index }.into()
                }
                other => other,
            })
        })?;
        let mut all = Encoded::default();
        for done in &done {
            all.merge(done);
        }
        Ok(all)
    }

    fn decode_palette(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), CudaError> {
        palette.check()?;
        let layout = palette.layout;
        expect(layout.values(), out.len())?;
        let shares = self.groups(&layout, out, layout.cols());
        self.each(shares, |cuda, (groups, out)| {
            PaletteEngine::decode_palette(cuda, &part(palette, &groups)?, out)
        })?;
        Ok(())
    }

    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), CudaError> {
        palette.check()?;
        let layout = palette.layout;
        expect(layout.cols(), x.len())?;
        expect(layout.rows(), out.len())?;
        check_dot(x.len())?;
        let shares = self.groups(&layout, out, 1);
        self.each(shares, |cuda: &mut Cuda, (groups, out)| {
            PaletteEngine::multiply_palette(cuda, &part(palette, &groups)?, x, x_scale, out)
        })?;
        Ok(())
    }
}
