//! Encodes a matrix of floats as palettes, group by group.

use super::{Coder, Counts, IndexMatrix, PaletteError};
use crate::number::{Element, Stats};
use crate::quant::{Grid, int8};

/// Destination of an encoded matrix: the caller's slices.
#[derive(Debug)]
pub struct Output<'a> {
    /// [`IndexMatrix::index_bytes`] bytes.
    pub indices: &'a mut [u8],
    /// [`IndexMatrix::codebook_len`] entries.
    pub codebooks: &'a mut [i8],
    /// One scale per group.
    pub scales: &'a mut [f32],
}

/// Counts over encoded groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Encoded {
    /// Number of groups.
    pub groups: u64,
    /// Groups that held only zeros: scale 0, index 0.
    pub zero: u64,
    /// Groups that became zeros because their scale does not fit `f32`, although some value was not 0.
    pub flushed: u64,
}

impl Encoded {
    /// Adds the counts of other groups.
    pub fn merge(&mut self, other: &Self) {
        self.groups += other.groups;
        self.zero += other.zero;
        self.flushed += other.flushed;
    }
}

impl Output<'_> {
    /// Checks the lengths of the slices.
    ///
    /// # Errors
    /// [`PaletteError::Length`] for the first slice that does not fit the layout.
    pub fn check(&self, layout: &IndexMatrix) -> Result<(), PaletteError> {
        expect(layout.index_bytes(), self.indices.len())?;
        expect(layout.codebook_len(), self.codebooks.len())?;
        expect(layout.groups(), self.scales.len())
    }
}

pub(super) fn expect(expected: usize, found: usize) -> Result<(), PaletteError> {
    if expected == found {
        Ok(())
    } else {
        Err(PaletteError::Length { expected, found })
    }
}

/// Checks the arguments of [`encode`] except scratch, as every engine must before it starts.
///
/// # Errors
/// [`PaletteError::Length`] for the first slice that does not fit.
pub fn check<T>(
    layout: &IndexMatrix,
    values: &[T],
    importances: &[u32],
    out: &Output<'_>,
) -> Result<(), PaletteError> {
    expect(layout.values(), values.len())?;
    if !importances.is_empty() {
        expect(values.len(), importances.len())?;
    }
    out.check(layout)
}

/// Encodes a row-major matrix: computes the optimal codebook for each group, and for each value the index of the
/// entry nearest to its code.
///
/// Codes are those of [`int8::symmetric`] over the group: scale = max|x| / 127. `importances` is empty, or holds one
/// number per value: the number of times that the value counts. If all importances of a group are 0, each of its
/// values counts once. `scratch` holds [`IndexMatrix::scratch_len`] elements with any content. Two passes over the
/// values to choose and one to encode, and [`super::optimal_1d`] for each group; 3 KiB of stack.
///
/// # Errors
/// [`PaletteError::Length`] for a slice that does not fit; [`PaletteError::Scratch`]; [`PaletteError::NotFinite`]
/// with the lowest index in the matrix; [`PaletteError::Weight`] if a group's importances sum to more than
/// [`super::MAX_WEIGHT`].
pub fn encode<T: Element>(
    layout: &IndexMatrix,
    values: &[T],
    importances: &[u32],
    out: Output<'_>,
    scratch: &mut [u64],
) -> Result<Encoded, PaletteError> {
    check(layout, values, importances, &out)?;
    let needed = layout.scratch_len();
    if scratch.len() < needed {
        return Err(PaletteError::Scratch { needed });
    }
    let len = layout.group_len().max(1);
    let mut done = Encoded::default();
    let mut importances = importances.chunks(len);
    let group_bytes = layout.group_rows() * layout.row_bytes();
    let slots = (out.indices.chunks_mut(group_bytes.max(1)))
        .zip(out.codebooks.chunks_mut(layout.width().entries()))
        .zip(out.scales);
    for (group, (values, ((indices, codebook), scale))) in values.chunks(len).zip(slots).enumerate()
    {
        let importances = importances.next().unwrap_or_default();
        let stats = Stats::of(values);
        if let Some(index) = stats.first_bad {
            let index = index + group as u64 * len as u64;
            return Err(PaletteError::NotFinite { index });
        }
        let grid = grid(&stats)?;
        *scale = grid.scale;
        done.merge(&Encoded {
            groups: 1,
            zero: u64::from(stats.abs_max() == 0.0),
            flushed: u64::from(grid.scale == 0.0 && stats.abs_max() > 0.0),
        });
        choose(values, importances, &grid, codebook, scratch)?;
        pack(layout, values, &grid, codebook, indices)?;
    }
    Ok(done)
}

/// Fills the codebook of a group. Not inlined, so that its 2 KiB of counts are freed before the indices are computed.
#[inline(never)]
fn choose<T: Element>(
    values: &[T],
    importances: &[u32],
    grid: &Grid,
    codebook: &mut [i8],
    scratch: &mut [u64],
) -> Result<(), PaletteError> {
    let mut counts = Counts::EMPTY;
    counts.add(values, importances, grid)?;
    if counts.is_empty() {
        counts.add(values, &[], grid)?;
    }
    counts.choose(codebook, scratch).map(|_| ())
}

/// Writes the indices of a group. Not inlined either, so that its tables are not on the stack while the codebook is
/// chosen.
#[inline(never)]
fn pack<T: Element>(
    layout: &IndexMatrix,
    values: &[T],
    grid: &Grid,
    codebook: &[i8],
    indices: &mut [u8],
) -> Result<(), PaletteError> {
    let coder = Coder::new(layout.width(), codebook)?;
    let rows = values.chunks(layout.cols().max(1));
    for (row, out) in rows.zip(indices.chunks_mut(layout.row_bytes().max(1))) {
        coder.encode(row, grid, out)?;
    }
    Ok(())
}

/// Returns the int8 grid of a group of finite values.
///
/// # Errors
/// [`PaletteError::NotFinite`] with the first index of a value that is not finite, counted from the group's start.
pub fn grid(stats: &Stats) -> Result<Grid, PaletteError> {
    match (
        stats.first_bad,
        Grid::symmetric(stats.abs_max(), int8::LIMIT),
    ) {
        (None, Ok(grid)) => Ok(grid),
        (index, _) => Err(PaletteError::NotFinite {
            index: index.unwrap_or(0),
        }),
    }
}
