//! Encoding: groups in parallel, or one large group in tiles.

use tercet_core::number::{Element, Stats};
use tercet_core::palette::{
    self, Coder, Counts, Encoded, IndexMatrix, Output, PaletteError, scratch_len,
};
use tercet_core::quant::{Grid, Plan};

use super::{Matrix, lines, moved};
use crate::parallel::each::{chunks_mut, items_mut, numbers};
use crate::parallel::merged;
use crate::simd::palette::count;
use crate::simd::{Ahead, Backend, Stores};

/// Values that are encoded at a time before they are packed, on the stack: whole runs of eight.
const CODES: usize = 4096;

/// Tiles that all threads process together.
const WINDOW: usize = 64;

/// Encodes a matrix as [`palette::encode`] does and with its errors; groups of more than `tile` values are split.
pub(crate) fn encode<M: Matrix>(
    backend: Backend,
    layout: &IndexMatrix,
    matrix: &M,
    out: Output<'_>,
    tile: usize,
) -> Result<Encoded, M::Error> {
    out.check(layout)?;
    let (len, entries) = (layout.group_len(), layout.width().entries());
    let bytes = layout.group_rows() * layout.row_bytes();
    let group = |number: usize, indices: &[u8]| Group {
        first: number * len,
        len: indices.len() / layout.row_bytes() * layout.cols(),
        backend,
        layout,
        matrix,
    };
    let mut done = Encoded::default();
    if len <= tile {
        let slots = chunks_mut(out.indices, bytes)
            .zip(chunks_mut(out.codebooks, entries))
            .zip(items_mut(out.scales));
        let results = slots.gather_with(
            || (Buffers::default(), vec![0; layout.scratch_len()]),
            |(buffers, search), number, ((indices, codebook), scale)| {
                let group = group(number, indices);
                let (grid, done) = group.small(codebook, buffers, search)?;
                *scale = grid.scale;
                let coder = Coder::new(layout.width(), codebook)?;
                let (line, bytes) = lines(layout);
                let lines = buffers.codes.chunks(line).zip(indices.chunks_mut(bytes));
                for (codes, out) in lines {
                    backend.pack_palette(&coder, codes, out)?;
                }
                Ok::<_, M::Error>(done)
            },
        );
        // In order, so that the lowest index is reported.
        for result in results {
            done.merge(&result?);
        }
    } else {
        // One after another: each is enough work for all threads.
        let slots = (out.indices.chunks_mut(bytes)).zip(out.codebooks.chunks_mut(entries));
        for (number, ((indices, codebook), scale)) in slots.zip(out.scales).enumerate() {
            let group = group(number, indices);
            let (grid, more) = group.large(codebook, tile)?;
            *scale = grid.scale;
            let coder = Coder::new(layout.width(), codebook)?;
            group.pack(&coder, &grid, indices, tile)?;
            done.merge(&more);
        }
    }
    Ok(done)
}

/// A thread's buffers for values, and their codes.
struct Buffers<T> {
    values: Vec<T>,
    importances: Vec<u32>,
    codes: Vec<i8>,
}

impl<T> Default for Buffers<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            importances: Vec::new(),
            codes: Vec::new(),
        }
    }
}

/// A group of a matrix, or a part of one: whole lines, or a part of one from a multiple of eight on.
pub(crate) struct Group<'a, M> {
    /// Its first value's index in the matrix.
    pub(crate) first: usize,
    /// Number of its values.
    pub(crate) len: usize,
    pub(crate) backend: Backend,
    pub(crate) layout: &'a IndexMatrix,
    pub(crate) matrix: &'a M,
}

impl<M: Matrix> Group<'_, M> {
    /// Chooses the codebook on this thread; the codes stay in the buffers.
    fn small(
        &self,
        codebook: &mut [i8],
        buffers: &mut Buffers<M::Value>,
        search: &mut [u64],
    ) -> Result<(Grid, Encoded), M::Error> {
        let Self { first, len, .. } = *self;
        let values = self.matrix.values(first, len, &mut buffers.values)?;
        let stats = self.backend.extremes(values, Ahead::STREAM);
        let grid = self.grid(&stats)?;
        buffers.codes.resize(len, 0);
        code(self.backend, values, &grid, &mut buffers.codes)?;
        let importances = (self.matrix).importances(first, len, &mut buffers.importances)?;
        let mut counts = counts(&buffers.codes, importances)?;
        if counts.is_empty() {
            counts = count(&buffers.codes);
        }
        counts.choose(codebook, search)?;
        Ok((grid, done(&stats, &grid)))
    }

    /// Chooses the codebook on all threads.
    pub(crate) fn large(
        &self,
        codebook: &mut [i8],
        tile: usize,
    ) -> Result<(Grid, Encoded), M::Error> {
        let look = |buffers: &mut Buffers<M::Value>, first, len| {
            let values = self.matrix.values(first, len, &mut buffers.values)?;
            Ok(self.backend.extremes(values, Ahead::STREAM))
        };
        let stats = self.pass(tile, look, merged)?.unwrap_or(Stats::EMPTY);
        let grid = self.grid(&stats)?;
        let count = |weighted: bool| {
            let count = |buffers: &mut Buffers<M::Value>, first, len| {
                let values = self.matrix.values(first, len, &mut buffers.values)?;
                buffers.codes.resize(len, 0);
                code(self.backend, values, &grid, &mut buffers.codes)?;
                let importances = match weighted {
                    true => (self.matrix).importances(first, len, &mut buffers.importances)?,
                    false => &[],
                };
                Ok(counts(&buffers.codes, importances)?)
            };
            let sum = |mut a: Counts, b: Counts| {
                a.merge(&b);
                a
            };
            let counted = self.pass(tile, count, sum)?;
            Ok::<_, M::Error>(counted.unwrap_or(Counts::EMPTY))
        };
        let mut counts = count(true)?;
        if counts.is_empty() {
            counts = count(false)?;
        }
        counts.choose(codebook, &mut vec![0; scratch_len(255, codebook.len())])?;
        Ok((grid, done(&stats, &grid)))
    }

    /// Calls `work` for tiles with their first value and length on all threads, and merges the results in order.
    /// Windows of tiles are processed one after another, so that a matrix in a file is read from front to end.
    fn pass<T: Send + 'static>(
        &self,
        tile: usize,
        work: impl Fn(&mut Buffers<M::Value>, usize, usize) -> Result<T, M::Error> + Sync,
        merge: impl Fn(T, T) -> T + Sync,
    ) -> Result<Option<T>, M::Error> {
        let mut all = None;
        let tiles = self.len.div_ceil(tile);
        for window in (0..tiles).step_by(WINDOW) {
            let found = numbers(window..tiles.min(window + WINDOW))
                .reduce_with(
                    Buffers::default,
                    |buffers, _, number| {
                        let at = number * tile;
                        work(buffers, self.first + at, tile.min(self.len - at))
                    },
                    // In order and to the end, so that the lowest index is reported.
                    |a, b| Ok(merge(a?, b?)),
                )
                .transpose()?;
            all = match (all, found) {
                (Some(all), Some(found)) => Some(merge(all, found)),
                (all, found) => found.or(all),
            };
        }
        Ok(all)
    }

    /// Returns the grid of the group's extremes.
    fn grid(&self, stats: &Stats) -> Result<Grid, PaletteError> {
        palette::grid(stats).map_err(|error| moved(error, self.first))
    }

    /// Writes the indices on all threads, with some rows or a part of a row per task.
    pub(crate) fn pack(
        &self,
        coder: &Coder,
        grid: &Grid,
        indices: &mut [u8],
        tile: usize,
    ) -> Result<(), M::Error> {
        let (line, bytes) = lines(self.layout);
        let line = line.min(self.len);
        // Parts of a line are whole runs of eight.
        let part = tile.min(line).next_multiple_of(8);
        // Tasks for single short lines would cost more than the work.
        let lines = chunks_mut(indices, bytes).at_least((tile / line).max(1));
        lines.try_each(|number, indices| {
            let parts = chunks_mut(indices, coder.width().bytes(part));
            parts.try_each_with(Vec::new, |buffer, at, out| {
                let from = at * part;
                let (first, len) = (number * line + from, part.min(line - from));
                let values = self.matrix.values(self.first + first, len, buffer)?;
                let mut codes = [0; CODES];
                let outs = out.chunks_mut(coder.width().bytes(CODES));
                for (values, out) in values.chunks(CODES).zip(outs) {
                    let codes = &mut codes[..values.len()];
                    code(self.backend, values, grid, codes)?;
                    self.backend.pack_palette(coder, codes, out)?;
                }
                Ok(())
            })
        })
    }
}

/// Computes the codes of finite values.
fn code<T: Element>(
    backend: Backend,
    values: &[T],
    grid: &Grid,
    codes: &mut [i8],
) -> Result<(), PaletteError> {
    let plan = Plan::Affine(*grid);
    match backend.apply(&plan, values, codes, Stores::Cached, Ahead::STREAM) {
        Ok(_) => Ok(()),
        // The scale of a grid is not finite only if values are not.
        Err(_) => Err(PaletteError::ScaleNotFinite { group: 0 }),
    }
}

/// Returns the weights of codes, 1 for each if `importances` is empty.
fn counts(codes: &[i8], importances: &[u32]) -> Result<Counts, PaletteError> {
    if importances.is_empty() {
        return Ok(count(codes));
    }
    let mut counts = Counts::EMPTY;
    counts.add_codes(codes, importances)?;
    Ok(counts)
}

/// Returns the report of encoding a group.
fn done(stats: &Stats, grid: &Grid) -> Encoded {
    Encoded {
        groups: 1,
        zero: u64::from(stats.abs_max() == 0.0),
        flushed: u64::from(grid.scale == 0.0 && stats.abs_max() > 0.0),
    }
}
