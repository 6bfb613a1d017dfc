//! Counts of values by the top bits of their ordered patterns.

use std::ops::Range;

use tercet_core::number::{Element, Kind};
use tercet_core::quant::{Histogram, QuantError};

use super::launches::{PIECE, THREADS, check, kernel};
use super::record;
use super::through::{LOOKED_AT, chunks};
use crate::engine::{Cuda, CudaError, DeviceBuffer, Grid};

/// Blocks of a launch that counts, for each multiprocessor: each has a table of 32 KiB, which it adds to all others' at its end.
const BLOCKS: u32 = 4;
/// Values that counters of 32 bits are sure to hold, and whole vectors.
const MOST: usize = u32::MAX as usize & !15;

/// Values as the device counted them, up to the first that is not finite.
pub(super) struct Counted {
    counts: Vec<u32>,
    extremes: (f32, f32),
    /// Whether there was such a one.
    ended: bool,
}

impl Counted {
    /// Adds what parts of a stream gave, in order, up to the first value that is not finite.
    pub(super) fn add_all<const B: u32>(
        parts: impl IntoIterator<Item = Self>,
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), QuantError> {
        for part in parts {
            let (min, max) = part.extremes;
            histogram.add_counts(&part.counts, min, max)?;
            if part.ended {
                // All before it are counted, and nothing from it on.
                let index = histogram.count();
                return Err(QuantError::NotFinite { index });
            }
        }
        Ok(())
    }
}

impl Cuda {
    /// Counts values that the host has, by the top `bits` bits. What comes of it is the host's to add: a call that fails has counted nothing.
    ///
    /// Counters stay on the device, 4 · 2^bits bytes, while the values pass through it.
    pub(super) fn counted<T: Element>(
        &mut self,
        values: &[T],
        bits: u32,
    ) -> Result<Vec<Counted>, CudaError> {
        let parts = values.chunks(MOST);
        parts.map(|part| self.counted_part(part, bits)).collect()
    }

    fn counted_part<T: Element>(&mut self, values: &[T], bits: u32) -> Result<Counted, CudaError> {
        self.tally(bits, |cuda, found, table| {
            let out: &mut [i8] = &mut [];
            let count = |cuda: &mut Self, range, values: &_, _: &mut _| {
                cuda.launch_histogram(values, 0, range, found, table)
            };
            cuda.stream_through(chunks(1), LOOKED_AT, values, out, count)
        })
    }

    /// Adds values on the device to a histogram, as [`QuantizeEngine::histogram`] those of the host: up to the first that is not finite. O(n),
    /// two passes; 4 · 2^B bytes of the device's memory, and of the host's for each 2^32 values.
    ///
    /// # Errors
    /// [`QuantError::NotFinite`] in [`CudaError::Refused`], with all values before that one counted. With none counted:
    /// [`CudaError::Length`] where the buffer is of another engine; [`CudaError::OutOfMemory`], [`CudaError::Lost`], [`CudaError::Driver`].
    ///
    /// [`QuantizeEngine::histogram`]: tercet_core::engine::QuantizeEngine::histogram
    pub fn histogram_of<T: Element, const B: u32>(
        &mut self,
        values: &DeviceBuffer<T>,
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), CudaError> {
        values.check(&self.pool, values.len())?;
        let parts = (0..values.len()).step_by(MOST).map(|from| {
            let len = MOST.min(values.len() - from);
            self.tally(B, |cuda, found, table| {
                cuda.launch_histogram(values, from, 0..len, found, table)
            })
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        Ok(Counted::add_all(parts, histogram)?)
    }

    /// What `count` adds to empty counters.
    fn tally(
        &mut self,
        bits: u32,
        count: impl FnOnce(
            &mut Self,
            &mut DeviceBuffer<u64>,
            &mut DeviceBuffer<u32>,
        ) -> Result<(), CudaError>,
    ) -> Result<Counted, CudaError> {
        let mut table = self.zeros(1 << bits)?;
        let mut found = self.zeros(record::FOUND)?;
        count(self, &mut found, &mut table)?;
        let mut words = [0; record::FOUND];
        self.read(&found, &mut words)?;
        let mut counts = vec![0; table.len()];
        self.read(&table, &mut counts)?;
        let (extremes, ended) = record::found(&words);
        Ok(Counted {
            counts,
            extremes,
            ended,
        })
    }

    /// Adds the values of a buffer from `from` on, a multiple of 16, which are `range` of a stream, to a table of 2^B counters and to what was
    /// found so far.
    fn launch_histogram<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        from: usize,
        range: Range<usize>,
        found: &mut DeviceBuffer<u64>,
        table: &mut DeviceBuffer<u32>,
    ) -> Result<(), CudaError> {
        let (first, len) = (range.start, range.len());
        check(values.len().saturating_sub(from), len)?;
        check(found.len(), record::FOUND)?;
        // A multiple of 16, so that vectors are whole.
        let piece = |most: u32| len.div_ceil(most as usize).max(PIECE).next_multiple_of(16);
        let most = self.most_blocks();
        let shared = piece(most);
        let arguments = [
            values.at(from),
            first.into(),
            len.into(),
            shared.into(),
            (&mut *found).into(),
        ];
        let grid = Grid::strided(len, shared, THREADS, most);
        let name = kernel!("histogram_find", T);
        // SAFETY: so many values lie in the buffer from there on, which is at a multiple of 16 bytes, and were written; `found` is one
        // record, and borrowed alone.
        unsafe { self.launch("histogram_ordered", name, grid, &arguments) }?;
        let most = self.multiprocessors.saturating_mul(BLOCKS);
        let shared = piece(most);
        let arguments = [
            values.at(from),
            first.into(),
            len.into(),
            shared.into(),
            // The table has 2^B counters for the top B bits.
            (32 - table.len().trailing_zeros()).into(),
            found.into(),
            table.into(),
        ];
        let grid = Grid::strided(len, shared, THREADS, most);
        let name = kernel!("histogram_count", T);
        // SAFETY: as above; there is a counter for each value of the top bits, and the table is borrowed alone.
        unsafe { self.launch("histogram_ordered", name, grid, &arguments) }
    }
}
