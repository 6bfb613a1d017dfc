//! Computes values and products directly from packed indices.

use super::encode::expect;
use super::pack::{padded, unpack, with_width};
use super::{IndexMatrix, PaletteError, Width};

/// Largest length of a dot product that 32 bits hold for every codebook: 2¹⁷ − 1 terms of at most 2¹⁴.
pub const MAX_DOT: usize = (1 << 17) - 1;

/// A borrowed encoded matrix: from an [`super::Output`], from flash or from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Palette<'a> {
    /// Numbers of rows, columns, groups and bits.
    pub layout: IndexMatrix,
    /// [`IndexMatrix::index_bytes`] bytes; the padding of rows does not matter.
    pub indices: &'a [u8],
    /// [`IndexMatrix::codebook_len`] entries, in any order.
    pub codebooks: &'a [i8],
    /// One scale per group.
    pub scales: &'a [f32],
}

/// A row of an encoded matrix, for [`decode_row`] and [`dot`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Row<'a> {
    /// [`IndexMatrix::row_bytes`] bytes.
    pub indices: &'a [u8],
    /// Codebook of its group.
    pub codebook: &'a [i8],
    /// Scale of its group.
    pub scale: f32,
}

impl<'a> Palette<'a> {
    /// Checks the slices and the scales.
    ///
    /// # Errors
    /// [`PaletteError::Length`] for the first slice that does not fit the layout; [`PaletteError::ScaleNotFinite`].
    pub fn check(&self) -> Result<(), PaletteError> {
        expect(self.layout.index_bytes(), self.indices.len())?;
        expect(self.layout.codebook_len(), self.codebooks.len())?;
        expect(self.layout.groups(), self.scales.len())?;
        match self.scales.iter().position(|scale| !scale.is_finite()) {
            Some(group) => Err(PaletteError::ScaleNotFinite { group }),
            None => Ok(()),
        }
    }

    /// Returns a row; `None` after the last, and if a slice is too short.
    pub fn row(&self, row: usize) -> Option<Row<'a>> {
        let (bytes, entries) = (self.layout.row_bytes(), self.layout.width().entries());
        let group = row.checked_div(self.layout.group_rows())?;
        let part = |len: usize, place: usize| {
            let start = len.checked_mul(place)?;
            Some(start..start.checked_add(len)?)
        };
        Some(Row {
            indices: self.indices.get(part(bytes, row)?)?,
            codebook: self.codebooks.get(part(entries, group)?)?,
            scale: *self.scales.get(group)?,
        })
    }

    /// Returns the rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> {
        let palette = *self;
        (0..self.layout.rows()).map_while(move |row| palette.row(row))
    }
}

/// Writes `fl(entry · scale)` for every value, row-major.
///
/// # Errors
/// Those of [`Palette::check`]; [`PaletteError::Length`] unless `out` holds [`IndexMatrix::values`].
pub fn decode(palette: &Palette<'_>, out: &mut [f32]) -> Result<(), PaletteError> {
    palette.check()?;
    expect(palette.layout.values(), out.len())?;
    let width = palette.layout.width();
    for (row, out) in (palette.rows()).zip(out.chunks_mut(palette.layout.cols().max(1))) {
        decode_row(width, row.indices, row.codebook, row.scale, 0, out)?;
    }
    Ok(())
}

/// Writes as many values of a row as `out` holds, from `first` on: `fl(entry · scale)`.
///
/// # Errors
/// [`PaletteError::Length`] unless `codebook` has 2^bits entries and `row` contains the requested indices.
pub fn decode_row(
    width: Width,
    row: &[u8],
    codebook: &[i8],
    scale: f32,
    first: usize,
    out: &mut [f32],
) -> Result<(), PaletteError> {
    let end = first.checked_add(out.len()).ok_or(PaletteError::TooLarge)?;
    let expected = width.bytes(end);
    if row.len() < expected {
        let found = row.len();
        return Err(PaletteError::Length { expected, found });
    }
    expect(width.entries(), codebook.len())?;
    with_width!(width, restore(row, codebook, scale, first, out));
    Ok(())
}

fn restore<const BITS: usize, const ENTRIES: usize>(
    row: &[u8],
    codebook: &[i8],
    scale: f32,
    first: usize,
    out: &mut [f32],
) {
    let Some(codebook) = codebook.first_chunk::<ENTRIES>() else {
        return;
    };
    let value = |index: u8| f32::from(codebook[usize::from(index) & (ENTRIES - 1)]) * scale;
    let runs = row.get(first / 8 * BITS..).unwrap_or_default();
    let mut runs = runs.chunks(BITS).map(|run| unpack::<BITS>(&padded(run)));
    let mut out = out.iter_mut();
    if !first.is_multiple_of(8) {
        // The part begins within a run of eight indices.
        let run = runs.next().unwrap_or_default();
        for (index, y) in run.into_iter().skip(first % 8).zip(out.by_ref()) {
            *y = value(index);
        }
    }
    for (run, out) in runs.zip(out.into_slice().chunks_mut(8)) {
        for (y, index) in out.iter_mut().zip(run) {
            *y = value(index);
        }
    }
}

/// Returns the exact Σ entry · x of a row and int8 activations, and looks up each entry when it is used.
///
/// # Errors
/// [`PaletteError::DotLength`] for more than [`MAX_DOT`] values; [`PaletteError::Length`] unless `codebook` has 2^bits
/// entries and `row` holds [`Width::bytes`] of the activations.
///
/// # Example
/// ```
/// use tercet_core::palette::{Width, dot};
///
/// // Indices 0, 3, 2, 1 in two bits each, the first in the lowest.
/// let row = [0b01_10_11_00];
/// assert_eq!(dot(Width::new(2)?, &row, &[-90, -20, 15, 100], &[1, 2, -1, 3])?, -90 + 200 - 15 - 60);
/// # Ok::<(), tercet_core::palette::PaletteError>(())
/// ```
pub fn dot(width: Width, row: &[u8], codebook: &[i8], x: &[i8]) -> Result<i32, PaletteError> {
    check_dot(x.len())?;
    expect(width.entries(), codebook.len())?;
    expect(width.bytes(x.len()), row.len())?;
    Ok(with_width!(width, product(row, codebook, x)))
}

fn check_dot(len: usize) -> Result<(), PaletteError> {
    let max = MAX_DOT;
    if len > max {
        return Err(PaletteError::DotLength { len, max });
    }
    Ok(())
}

/// A term is at most 2⁷ · 2⁷ in magnitude, so 2¹⁷ − 1 of them stay below 2³¹.
fn product<const BITS: usize, const ENTRIES: usize>(row: &[u8], codebook: &[i8], x: &[i8]) -> i32 {
    let Some(codebook) = codebook.first_chunk::<ENTRIES>() else {
        return 0;
    };
    let eight = |run: &[u8; BITS], x: &[i8; 8]| {
        let entries = unpack(run).map(|index| codebook[usize::from(index) & (ENTRIES - 1)]);
        let terms = entries.iter().zip(x);
        terms
            .map(|(&entry, &x)| i32::from(entry) * i32::from(x))
            .sum::<i32>()
    };
    let (runs, eights) = (row.chunks_exact(BITS), x.chunks_exact(8));
    // If x ends within a run of indices, the zeros that pad it have no influence.
    let last = eight(
        &padded(row.get(x.len() / 8 * BITS..).unwrap_or_default()),
        &padded(eights.remainder()),
    );
    let runs = runs.filter_map(<[u8]>::first_chunk::<BITS>);
    let eights = eights.filter_map(<[i8]>::first_chunk::<8>);
    runs.zip(eights).map(|(run, x)| eight(run, x)).sum::<i32>() + last
}

/// Multiplies the matrix by int8 activations that share one scale, with one output per row: `fl(fl(f32(Σ entry · x) ·
/// scale) · x_scale)`, with an exact sum.
///
/// # Errors
/// Those of [`Palette::check`]; [`PaletteError::Length`] unless there is one activation per column and one output per
/// row; [`PaletteError::DotLength`].
pub fn matvec(
    palette: &Palette<'_>,
    x: &[i8],
    x_scale: f32,
    out: &mut [f32],
) -> Result<(), PaletteError> {
    palette.check()?;
    expect(palette.layout.cols(), x.len())?;
    expect(palette.layout.rows(), out.len())?;
    check_dot(x.len())?;
    for (row, y) in palette.rows().zip(out) {
        let sum = dot(palette.layout.width(), row.indices, row.codebook, x)?;
        *y = sum as f32 * row.scale * x_scale;
    }
    Ok(())
}
