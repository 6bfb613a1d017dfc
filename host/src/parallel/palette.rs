//! Palettes on rayon's threads: groups side by side, or one large group in tiles.

use rayon::prelude::*;
use tercet_core::engine::PaletteEngine;
use tercet_core::number::{Element, Stats};
use tercet_core::palette::{
    self, Coder, Counts, Encoded, Layout, Output, Palette, PaletteError, scratch_len,
};
use tercet_core::quant::Grid;

use super::{Threads, merged};

/// A matrix to encode, read part by part by any thread.
pub(crate) trait Matrix: Sync {
    /// What can fail.
    type Error: From<PaletteError> + Send;

    /// Reads the values from `first` on, row-major.
    fn values(&self, first: usize, out: &mut [f32]) -> Result<(), Self::Error>;

    /// Reads how often each value counts; false, and `out` is left alone, where each counts once.
    fn importances(&self, first: usize, out: &mut [u32]) -> Result<bool, Self::Error>;
}

/// Encodes a matrix as [`palette::encode`] does and with its errors; groups of more than `tile` values are cut.
pub(crate) fn encode<M: Matrix>(
    layout: &Layout,
    matrix: &M,
    out: Output<'_>,
    tile: usize,
) -> Result<Encoded, M::Error> {
    out.check(layout)?;
    let (len, entries) = (layout.group_len(), layout.width().entries());
    let slots = (out
        .indices
        .par_chunks_mut(layout.group_rows() * layout.row_bytes()))
    .zip(out.codebooks.par_chunks_mut(entries))
    .zip(out.scales.par_iter_mut());
    let place = |group: usize, indices: &[u8]| Group {
        first: group * len,
        rows: indices.len() / layout.row_bytes(),
    };
    let results: Vec<Result<Encoded, M::Error>> = if len <= tile {
        let small = slots.enumerate().map_init(
            || Scratch::new(layout),
            |scratch, (group, ((indices, codebook), scale))| {
                let group = place(group, indices);
                let out = Output {
                    indices,
                    codebooks: codebook,
                    scales: std::slice::from_mut(scale),
                };
                scratch.encode(layout, matrix, group, out)
            },
        );
        small.collect()
    } else {
        // One after another: each is work enough for all threads.
        let slots: Vec<_> = slots.enumerate().collect();
        let large = slots
            .into_iter()
            .map(|(group, ((indices, codebook), scale))| {
                let group = place(group, indices);
                let (grid, done) = large(layout, matrix, group, codebook, tile)?;
                *scale = grid.scale;
                let coder = Coder::new(layout.width(), codebook)?;
                pack(layout, matrix, group, &coder, &grid, indices, tile)?;
                Ok(done)
            });
        large.collect()
    };
    let mut done = Encoded::default();
    // In order, so that the lowest index is the one reported.
    for result in results {
        done.merge(&result?);
    }
    Ok(done)
}

/// Where a group lies.
#[derive(Clone, Copy)]
struct Group {
    /// Its first value's index in the matrix.
    first: usize,
    rows: usize,
}

/// What a thread encodes whole groups in.
struct Scratch {
    values: Vec<f32>,
    importances: Vec<u32>,
    search: Vec<u64>,
}

impl Scratch {
    fn new(layout: &Layout) -> Self {
        Self {
            values: Vec::new(),
            importances: Vec::new(),
            search: vec![0; layout.scratch_len()],
        }
    }

    fn encode<M: Matrix>(
        &mut self,
        layout: &Layout,
        matrix: &M,
        group: Group,
        out: Output<'_>,
    ) -> Result<Encoded, M::Error> {
        let own = Layout::new(layout.width(), group.rows, layout.cols(), 1)?;
        self.values.resize(own.values(), 0.0);
        self.importances.resize(own.values(), 0);
        matrix.values(group.first, &mut self.values)?;
        let importances = match matrix.importances(group.first, &mut self.importances)? {
            true => self.importances.as_slice(),
            false => &[],
        };
        palette::encode(&own, &self.values, importances, out, &mut self.search)
            .map_err(|error| M::Error::from(moved(error, group.first)))
    }
}

/// The error of a part that begins at value `first`, seen from the whole.
fn moved(error: PaletteError, first: usize) -> PaletteError {
    match error {
        PaletteError::NotFinite { index } => PaletteError::NotFinite {
            index: index + first as u64,
        },
        other => other,
    }
}

/// Chooses the codebook of a group that all threads read.
fn large<M: Matrix>(
    layout: &Layout,
    matrix: &M,
    group: Group,
    codebook: &mut [i8],
    tile: usize,
) -> Result<(Grid, Encoded), M::Error> {
    let len = group.rows * layout.cols();
    let tiles = || {
        let tiles = (0..len.div_ceil(tile)).into_par_iter();
        tiles.map(|at| (group.first + at * tile, tile.min(len - at * tile)))
    };
    let stats = tiles()
        .map_init(Vec::new, |values, (first, len)| {
            values.resize(len, 0.0);
            matrix.values(first, values)?;
            Ok::<_, M::Error>(Stats::of(values.as_slice()))
        })
        .try_reduce(|| Stats::EMPTY, |a, b| Ok(merged(a, b)))?;
    let grid = palette::grid(&stats).map_err(|error| moved(error, group.first))?;
    let count = |weighted: bool| {
        let empty = || (Vec::new(), Vec::new(), Counts::EMPTY);
        let parts = tiles().try_fold(empty, |(mut values, mut importances, mut counts), part| {
            let (first, len) = part;
            values.resize(len, 0.0);
            importances.resize(len, 0);
            matrix.values(first, &mut values)?;
            let given = weighted && matrix.importances(first, &mut importances)?;
            let chosen = if given { importances.as_slice() } else { &[] };
            counts.add(&values, chosen, &grid)?;
            Ok::<_, M::Error>((values, importances, counts))
        });
        parts
            .map(|part| part.map(|(_, _, counts)| counts))
            .try_reduce(
                || Counts::EMPTY,
                |mut a, b| {
                    a.merge(&b);
                    Ok(a)
                },
            )
    };
    let mut counts = count(true)?;
    if counts.is_empty() {
        counts = count(false)?;
    }
    counts.choose(codebook, &mut vec![0; scratch_len(255, codebook.len())])?;
    let done = Encoded {
        groups: 1,
        zero: u64::from(stats.abs_max() == 0.0),
        flushed: u64::from(grid.scale == 0.0 && stats.abs_max() > 0.0),
    };
    Ok((grid, done))
}

/// Writes the indices of a group, some rows or a part of a row a task.
fn pack<M: Matrix>(
    layout: &Layout,
    matrix: &M,
    group: Group,
    coder: &Coder,
    grid: &Grid,
    indices: &mut [u8],
    tile: usize,
) -> Result<(), M::Error> {
    let cols = layout.cols();
    let rows = (tile / cols).max(1);
    // Parts of a row are whole runs of eight.
    let part = tile.min(cols).next_multiple_of(8);
    let tasks = indices
        .par_chunks_mut(rows * layout.row_bytes())
        .enumerate();
    tasks.try_for_each(|(task, indices)| {
        let first = group.first + task * rows * cols;
        let lines = indices.par_chunks_mut(layout.row_bytes()).enumerate();
        // Inner tasks of short rows would cost more than they do.
        let lines = lines.with_min_len(rows);
        lines.try_for_each(|(row, indices)| {
            let parts = indices
                .par_chunks_mut(layout.width().bytes(part))
                .enumerate();
            parts.try_for_each_init(Vec::new, |values, (at, out)| {
                let from = at * part;
                values.resize(part.min(cols - from), 0.0);
                matrix.values(first + row * cols + from, values)?;
                Ok(coder.encode(values.as_slice(), grid, out)?)
            })
        })
    })
}

impl PaletteEngine for Threads {
    type Error = PaletteError;

    fn encode<T: Element>(
        &mut self,
        layout: &Layout,
        values: &[T],
        importances: &[u32],
        out: Output<'_>,
        scratch: &mut [u64],
    ) -> Result<Encoded, PaletteError> {
        palette::check(layout, values, importances, &out, scratch)?;
        let matrix = Slices {
            values,
            importances,
        };
        encode(layout, &matrix, out, self.tile)
    }

    fn decode(&mut self, palette: &Palette<'_>, out: &mut [f32]) -> Result<(), PaletteError> {
        decode(palette, out, self.tile)
    }

    fn matvec(
        &mut self,
        palette: &Palette<'_>,
        x: &[i8],
        x_scale: f32,
        out: &mut [f32],
    ) -> Result<(), PaletteError> {
        matvec(palette, x, x_scale, out, self.tile)
    }
}

/// A matrix in slices.
struct Slices<'a, T> {
    values: &'a [T],
    importances: &'a [u32],
}

impl<T: Element> Matrix for Slices<'_, T> {
    type Error = PaletteError;

    fn values(&self, first: usize, out: &mut [f32]) -> Result<(), PaletteError> {
        for (x, value) in out.iter_mut().zip(&self.values[first..]) {
            *x = value.to_f32();
        }
        Ok(())
    }

    fn importances(&self, first: usize, out: &mut [u32]) -> Result<bool, PaletteError> {
        if self.importances.is_empty() {
            return Ok(false);
        }
        out.copy_from_slice(&self.importances[first..][..out.len()]);
        Ok(true)
    }
}

/// As [`palette::decode`], a run of rows a task.
fn decode(palette: &Palette<'_>, out: &mut [f32], tile: usize) -> Result<(), PaletteError> {
    palette.check()?;
    expect(palette.layout.values(), out.len())?;
    let cols = palette.layout.cols();
    each_row(palette, out, cols, tile / cols, |row, out| {
        let width = palette.layout.width();
        palette::decode_row(width, row.indices, row.codebook, row.scale, 0, out)
    })
}

/// As [`palette::matvec`], a run of rows a task.
fn matvec(
    palette: &Palette<'_>,
    x: &[i8],
    x_scale: f32,
    out: &mut [f32],
    tile: usize,
) -> Result<(), PaletteError> {
    palette.check()?;
    expect(palette.layout.cols(), x.len())?;
    expect(palette.layout.rows(), out.len())?;
    each_row(palette, out, 1, tile / palette.layout.cols(), |row, out| {
        let sum = palette::dot(palette.layout.width(), row.indices, row.codebook, x)?;
        out[0] = sum as f32 * row.scale * x_scale;
        Ok(())
    })
}

/// Calls `work` with each row and its `len` outputs.
fn each_row(
    palette: &Palette<'_>,
    out: &mut [f32],
    len: usize,
    rows: usize,
    work: impl Fn(palette::Row<'_>, &mut [f32]) -> Result<(), PaletteError> + Sync,
) -> Result<(), PaletteError> {
    let rows = rows.max(1);
    let tasks = out.par_chunks_mut(rows * len).enumerate();
    tasks.try_for_each(|(task, out)| {
        for (row, out) in (task * rows..).zip(out.chunks_mut(len)) {
            // Checked above: every row is there.
            if let Some(row) = palette.row(row) {
                work(row, out)?;
            }
        }
        Ok(())
    })
}

/// [`PaletteError::Length`] unless the two are equal.
fn expect(expected: usize, found: usize) -> Result<(), PaletteError> {
    match expected == found {
        true => Ok(()),
        false => Err(PaletteError::Length { expected, found }),
    }
}
