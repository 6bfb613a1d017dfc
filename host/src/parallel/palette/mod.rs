//! Palettes on rayon's threads: groups and rows in parallel, or one large group in tiles.

mod encode;

use tercet_core::engine::PaletteEngine;
use tercet_core::number::Element;
use tercet_core::palette::{self, Encoded, IndexMatrix, MAX_DOT, Output, Palette, PaletteError};

pub(crate) use encode::{Group, encode};

use super::Threads;
use super::each::{chunks, chunks_mut, items};
use crate::simd::Backend;
use crate::simd::palette::{Activations, Codebook};

/// A matrix to encode; any thread reads parts of it.
pub(crate) trait Matrix: Sync {
    /// The type of its values.
    type Value: Element;
    /// Its errors.
    type Error: From<PaletteError> + Send + 'static;

    /// Returns the `len` values from `first` on, row-major: in place, or read into the buffer.
    fn values<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<Self::Value>,
    ) -> Result<&'a [Self::Value], Self::Error>;

    /// Returns how often each of these values counts, likewise; empty if each counts once.
    fn importances<'a>(
        &'a self,
        first: usize,
        len: usize,
        buffer: &'a mut Vec<u32>,
    ) -> Result<&'a [u32], Self::Error>;
}

/// Converts the error of a part that begins at value `first` to one of the whole.
pub(crate) fn moved(error: PaletteError, first: usize) -> PaletteError {
    match error {
        PaletteError::NotFinite { index } => PaletteError::NotFinite {
            index: index + first as u64,
        },
        other => other,
    }
}

/// Returns values and bytes of a line: a whole group if its rows fill their bytes, so that they are contiguous,
/// otherwise a row.
fn lines(layout: &IndexMatrix) -> (usize, usize) {
    let rows = match layout.cols() % 8 * usize::from(layout.width().bits()) % 8 {
        0 => layout.group_rows(),
        _ => 1,
    };
    (rows * layout.cols(), rows * layout.row_bytes())
}

impl PaletteEngine for Threads {
    type Error = PaletteError;

    /// Each thread has its own scratch.
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
    ) -> Result<Encoded, PaletteError> {
        palette::check(layout, values, importances, &out)?;
        let matrix = Slices {
            values,
            importances,
        };
        encode(self.backend, layout, &matrix, out, self.tile)
    }

    fn decode_palette(
        &mut self,
        palette: &Palette<'_>,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        decode(self.backend, palette, out, self.tile)
    }

    fn multiply_palette(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        matvec(self.backend, palette, x, x_scale, out, self.tile)
    }
}

/// A matrix in slices.
struct Slices<'a, T> {
    values: &'a [T],
    importances: &'a [u32],
}

impl<T: Element> Matrix for Slices<'_, T> {
    type Value = T;
    type Error = PaletteError;

    fn values<'a>(
        &'a self,
        first: usize,
        len: usize,
        _: &'a mut Vec<T>,
    ) -> Result<&'a [T], PaletteError> {
        Ok(&self.values[first..][..len])
    }

    fn importances<'a>(
        &'a self,
        first: usize,
        len: usize,
        _: &'a mut Vec<u32>,
    ) -> Result<&'a [u32], PaletteError> {
        Ok(match self.importances {
            [] => &[],
            all => &all[first..][..len],
        })
    }
}

/// As [`palette::decode`], with some rows or a part of a row per task.
fn decode(
    backend: Backend,
    palette: &Palette<'_>,
    out: &mut [f32],
    tile: usize,
) -> Result<(), PaletteError> {
    palette.check()?;
    let (layout, width) = (palette.layout, palette.layout.width());
    expect(layout.values(), out.len())?;
    let (line, bytes) = lines(&layout);
    let part = tile.min(line).next_multiple_of(8);
    let of_group = layout.group_rows() * layout.row_bytes();
    let groups = chunks_mut(out, layout.group_len())
        .zip(chunks(palette.indices, of_group))
        .zip(chunks(palette.codebooks, width.entries()))
        .zip(items(palette.scales));
    // Tasks for single small groups or short lines would cost more than the work.
    let groups = groups.at_least((tile / layout.group_len()).max(1));
    groups.try_each(|_, (((out, indices), entries), &scale)| {
        let codebook = Codebook::new(width, entries, scale)?;
        let lines = chunks_mut(out, line).zip(chunks(indices, bytes));
        let lines = lines.at_least((tile / line).max(1));
        lines.try_each(|_, (out, indices)| {
            let parts = chunks_mut(out, part).zip(chunks(indices, width.bytes(part)));
            parts.try_each(|_, (out, indices)| backend.decode_palette(&codebook, indices, out))
        })
    })
}

/// As [`palette::matvec`], with runs of rows per task.
///
/// A task has about eight tiles of weights, because a weight takes so little time here.
fn matvec(
    backend: Backend,
    palette: &Palette<'_>,
    x: &[i8],
    x_scale: f32,
    out: &mut [f32],
    tile: usize,
) -> Result<(), PaletteError> {
    palette.check()?;
    let (layout, width) = (palette.layout, palette.layout.width());
    expect(layout.cols(), x.len())?;
    expect(layout.rows(), out.len())?;
    if x.len() > MAX_DOT {
        return Err(PaletteError::DotLength {
            len: x.len(),
            max: MAX_DOT,
        });
    }
    let x = Activations::new(x);
    let rows = (tile.saturating_mul(8) / layout.cols()).max(1);
    chunks_mut(out, rows).try_each(|task, out| {
        let mut row = task * rows;
        let mut out = out;
        while !out.is_empty() {
            // The part of the task in one group.
            let group = row / layout.group_rows();
            let left = (group + 1) * layout.group_rows() - row;
            let (part, after) = out.split_at_mut(left.min(out.len()));
            let entries = &palette.codebooks[group * width.entries()..][..width.entries()];
            let codebook = Codebook::new(width, entries, palette.scales[group])?;
            let bytes = layout.row_bytes();
            let indices = &palette.indices[row * bytes..][..part.len() * bytes];
            backend.palette_products(&codebook, indices, &x, x_scale, part)?;
            row += part.len();
            out = after;
        }
        Ok(())
    })
}

/// Returns [`PaletteError::Length`] unless the two are equal.
fn expect(expected: usize, found: usize) -> Result<(), PaletteError> {
    match expected == found {
        true => Ok(()),
        false => Err(PaletteError::Length { expected, found }),
    }
}
