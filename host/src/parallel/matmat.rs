//! Layers times many rows of activations: rows of weights in parallel.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use tercet_core::linear::{I8Sym, Layer};

use super::Threads;
use super::each::numbers;
use super::team;
use crate::simd::ask_to_write;
use crate::simd::linear::{PanelSums, ROWS, Strips};

/// Number of rows of outputs that are prefetched: a part of a row has only a few lines, far from those of the next.
const AHEAD_ROWS: usize = 4;

/// Products of up to this many tiles of weights times rows of activations wake no threads: they take some ten
/// microseconds on one.
const SMALL: usize = 64;
/// Tiles of activations that one thread packs in about as long.
const PACKED: usize = 4;

impl Threads {
    /// Returns activations packed for [`Threads::tiles`], if that pays off.
    pub(super) fn strips(self, layer: &Layer<'_>, x: I8Sym<'_>) -> Option<Strips> {
        let alone = self.task().saturating_mul(PACKED);
        self.backend().strips(layer.weights(), x, alone)
    }

    /// Calls `give` with the thread's own scratch, some rows of a layer, the first of them, the number of a row of
    /// activations, its outputs for those rows, and their sums, until all rows of both are combined. For the same rows
    /// of the layer, the rows of activations come in order. `out` has an output for each, or is shared by rows of
    /// activations that are as far apart as it has rows.
    ///
    /// A thread packs about eight tiles of weights at a time, which stay in its second-level cache while all
    /// activations pass.
    pub(super) fn tiles<T: Send, R: Default>(
        self,
        layer: &Layer<'_>,
        x: &Strips,
        out: &mut [T],
        give: impl Fn(&mut R, &Layer<'_>, usize, usize, &mut [T], PanelSums<'_>) + Sync,
    ) {
        let room = || Some((self.backend().panels()?, R::default()));
        self.columns(
            layer,
            x.rows(),
            out,
            room,
            |(panels, room), part, first, columns| {
                panels.multiply(part.weights(), x, |row, found| {
                    columns.ask(row + AHEAD_ROWS);
                    give(room, part, first, row, columns.row(row), found);
                });
            },
        );
    }

    /// Calls `work` with some rows of a layer, the first of them and their columns of `out`, until all are done; and
    /// with the scratch that `room` makes for each thread, unless it makes none. `out` is as in [`Threads::tiles`], for
    /// `count` rows of activations.
    pub(super) fn columns<T: Send, R>(
        self,
        layer: &Layer<'_>,
        count: usize,
        out: &mut [T],
        room: impl Fn() -> Option<R> + Sync,
        work: impl Fn(&mut R, &Layer<'_>, usize, &mut Columns<'_, '_, T>) + Sync,
    ) {
        let weights = layer.weights();
        let products = weights.rows().saturating_mul(count * weights.cols());
        let threads = match products / SMALL <= team::tile(self.tile) {
            true => 1,
            false => self.threads(),
        };
        let rows = (self.tile.saturating_mul(8) / weights.cols()).max(1);
        // Parts for all threads, even for a small matrix.
        let share = weights.rows().div_ceil(4 * threads);
        let rows = rows.min(share).next_multiple_of(ROWS);
        let out = Table::new(out, weights.rows());
        let parts = weights.rows().div_ceil(rows);
        let next = AtomicUsize::new(0);
        // A task per thread, with scratch for all its parts.
        let task = || {
            let Some(mut room) = room() else {
                return;
            };
            loop {
                let part = next.fetch_add(1, Ordering::Relaxed);
                if part >= parts {
                    return;
                }
                let first = part * rows;
                // In whole panels, and so in whole groups of rows: it always exists.
                let Some(part) = layer.part(first, rows) else {
                    return;
                };
                let mut columns = Columns {
                    table: &out,
                    first,
                    rows: part.weights().rows(),
                };
                work(&mut room, &part, first, &mut columns);
            }
        };
        if parts == 1 || threads == 1 {
            return task();
        }
        numbers(0..threads.min(parts)).each(|_, _| task());
    }
}

/// Some columns of a table, which no other part has.
pub(super) struct Columns<'t, 'a, T> {
    table: &'t Table<'a, T>,
    first: usize,
    rows: usize,
}

impl<T> Columns<'_, '_, T> {
    /// Returns the columns of a row.
    pub(super) fn row(&mut self, row: usize) -> &mut [T] {
        // SAFETY: no other part has these columns, and this one has no other slice while this is borrowed.
        unsafe {
            self.table
                .slice(row % self.table.rows, self.first, self.rows)
        }
    }

    /// Prefetches a row that will be written.
    fn ask(&self, row: usize) {
        self.table.ask(row, self.first, self.rows);
    }
}

/// A table of outputs, whose columns threads share.
struct Table<'a, T> {
    values: *mut T,
    rows: usize,
    cols: usize,
    of: PhantomData<&'a mut [T]>,
}

// SAFETY: the table stands for a slice that it borrows alone; `slice` asks callers to share it out.
unsafe impl<T: Send> Sync for Table<'_, T> {}

impl<'a, T> Table<'a, T> {
    const fn new(values: &'a mut [T], cols: usize) -> Self {
        Self {
            rows: values.len() / cols,
            cols,
            values: values.as_mut_ptr(),
            of: PhantomData,
        }
    }

    /// Prefetches values of a row that will be written.
    #[inline]
    fn ask(&self, row: usize, first: usize, len: usize) {
        if row < self.rows {
            let start = self.values.wrapping_add(row * self.cols + first).cast();
            ask_to_write(start, len * size_of::<T>());
        }
    }

    /// Returns values of a row.
    ///
    /// # Safety
    /// No slice with one of these values may be alive.
    #[expect(clippy::mut_from_ref, reason = "shared out as the caller promises")]
    unsafe fn slice(&self, row: usize, first: usize, len: usize) -> &mut [T] {
        assert!(row < self.rows && first <= self.cols && len <= self.cols - first);
        // SAFETY: inside the slice that the table borrows, by the assertion; nobody else has them, as the caller
        // promises.
        unsafe { std::slice::from_raw_parts_mut(self.values.add(row * self.cols + first), len) }
    }
}
