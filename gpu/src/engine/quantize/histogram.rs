//! Counts of values by the top bits of their ordered patterns.

use std::ops::Range;

use tercet_core::number::{Element, Kind};
use tercet_core::quant::{Histogram, QuantError};

use super::launches::{PIECE, THREADS, check, kernel};
use super::record;
use super::through::{LOOKED_AT, chunks};
use crate::engine::{Cuda, CudaError, DeviceBuffer, LaunchGrid};

/// Blocks of a counting launch per multiprocessor: each has a table of 32 KiB, which it adds to the common one at its
/// end.
const BLOCKS: u32 = 4;
/// Number of values that counters of 32 bits can hold in any case, in whole vectors.
const MOST: usize = u32::MAX as usize & !15;

/// The device's counts of values, up to the first that is not finite.
pub(super) struct Counted {
    /// A `Found`, then the counters: one copy reads both.
    words: Vec<u32>,
    extremes: (f32, f32),
    /// True if there was a value that is not finite.
    ended: bool,
}

impl Counted {
    /// Adds the counts of parts of a stream, in order, up to the first value that is not finite.
    pub(super) fn add_all<const B: u32>(
        parts: impl IntoIterator<Item = Self>,
        histogram: &mut Histogram<'_, B>,
    ) -> Result<(), QuantError> {
        for part in parts {
            let (min, max) = part.extremes;
            histogram.add_counts(&part.words[record::FOUND..], min, max)?;
            if part.ended {
                // All values before it are counted, and none from it on.
                let index = histogram.count();
                return Err(QuantError::NotFinite { index });
            }
        }
        Ok(())
    }
}

impl Cuda {
    /// Counts values on the host by their top `bits` bits. The host adds the result: a call that fails has counted
    /// nothing.
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
        self.tally(bits, values.len(), |cuda, len, table| {
            let out: &mut [i8] = &mut [];
            let count = |cuda: &mut Self, range, values: &_, _: &mut _| {
                cuda.launch_histogram(values, 0, range, table)
            };
            cuda.stream_through(chunks(1), LOOKED_AT, &values[..len], out, count)
        })
    }

    /// Adds values on the device to a histogram, up to the first that is not finite, as [`QuantizeEngine::histogram`]
    /// does for values on the host. O(n): one pass, and a second one over the values before a value that is not finite.
    /// Takes 4 · 2^B bytes of device memory, and of host memory for each 2^32 values.
    ///
    /// # Errors
    /// [`QuantError::NotFinite`] in [`CudaError::Refused`], with all values before that one counted. With none counted:
    /// [`CudaError::Length`] if the buffer belongs to another engine; [`CudaError::OutOfMemory`], [`CudaError::Lost`],
    /// [`CudaError::Driver`].
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
            self.tally(B, len, |cuda, len, table| {
                cuda.launch_histogram(values, from, 0..len, table)
            })
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        Ok(Counted::add_all(parts, histogram)?)
    }

    /// Returns the counts that `count` adds to empty counters for the first values of `len`: all of them, or those
    /// before the first that is not finite.
    fn tally(
        &mut self,
        bits: u32,
        len: usize,
        mut count: impl FnMut(&mut Self, usize, &mut DeviceBuffer<u32>) -> Result<(), CudaError>,
    ) -> Result<Counted, CudaError> {
        let mut table = self.zeros(record::FOUND + (1 << bits))?;
        count(self, len, &mut table)?;
        // Allocated while the device counts.
        let mut words = vec![0; table.len()];
        let mut ended = false;
        let extremes = loop {
            self.read(&table, &mut words)?;
            match words.first_chunk().map(record::found) {
                Some(Err(before)) if !ended => {
                    ended = true;
                    self.clear(&mut table)?;
                    count(self, before.min(len), &mut table)?;
                }
                // Those before the first are finite, and the table begins with a record.
                found => break found.and_then(Result::ok).unwrap_or_default(),
            }
        };
        Ok(Counted {
            words,
            extremes,
            ended,
        })
    }

    /// Counts the values of a buffer from `from` on, a multiple of 16, which are `range` of a stream. Adds them to the
    /// earlier result and to the table of 2^B counters after it.
    fn launch_histogram<T: Element>(
        &mut self,
        values: &DeviceBuffer<T>,
        from: usize,
        range: Range<usize>,
        table: &mut DeviceBuffer<u32>,
    ) -> Result<(), CudaError> {
        let (first, len) = (range.start, range.len());
        check(values.len().saturating_sub(from), len)?;
        let counters = table.len().saturating_sub(record::FOUND);
        check(counters, 1)?;
        let most = self.multiprocessors.saturating_mul(BLOCKS);
        // A multiple of 16, so that vectors are whole.
        let piece = len.div_ceil(most as usize).max(PIECE).next_multiple_of(16);
        let arguments = [
            values.at(from),
            first.into(),
            len.into(),
            piece.into(),
            // The table has 2^B counters for the top B bits.
            (32 - counters.trailing_zeros()).into(),
            (&*table).into(),
            table.at(record::FOUND),
        ];
        let grid = LaunchGrid::strided(len, piece, THREADS, most);
        // SAFETY: so many values lie in the buffer from there on, which is at a multiple of 16 bytes, and were written;
        // the table begins with a record, has a counter for each value of the top bits after it, and is borrowed alone.
        unsafe {
            self.launch(
                "histogram_ordered",
                kernel!("histogram", T),
                grid,
                &arguments,
            )
        }
    }
}
