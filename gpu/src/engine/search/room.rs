//! A search's memory on the device: one buffer, which is kept for the next search, and the places in it.

use tercet_core::number::Plain;

use crate::engine::device::{Cuda, bytes_of};
use crate::engine::error::CudaError;
use crate::engine::memory::DeviceBuffer;

/// The place of each part is a multiple of this: kernels load 16 bytes at once.
const ALIGNMENT: usize = 16;

/// Memory for searches of some rows. An allocation takes longer than a scan of few rows, so it is kept from one search
/// to the next.
#[derive(Debug, Default)]
pub(super) struct SearchMemory(Option<DeviceBuffer<u8>>);

impl SearchMemory {
    /// Returns at least so many bytes, with arbitrary values.
    pub(super) fn of(
        &mut self,
        cuda: &mut Cuda,
        bytes: usize,
    ) -> Result<&mut DeviceBuffer<u8>, CudaError> {
        let buffer = match self.0.take() {
            Some(buffer) if buffer.len() >= bytes => buffer,
            small => {
                // There may be no room for both.
                drop(small);
                cuda.room(bytes)?
            }
        };
        Ok(self.0.insert(buffer))
    }
}

/// Values of several types as the bytes of one upload.
#[derive(Debug, Default)]
pub(super) struct Packed(pub(super) Vec<u8>);

impl Packed {
    /// Appends values; returns their place.
    pub(super) fn push<T: Plain>(&mut self, values: &[T]) -> usize {
        let place = self.0.len().next_multiple_of(ALIGNMENT);
        self.0.resize(place, 0);
        self.0.extend_from_slice(bytes_of(values));
        place
    }
}

/// Places of a search's parts in its memory, in bytes; the upload comes before them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// A key for each query that rows must reach.
    pub(super) bars: usize,
    /// Number of rows that did.
    pub(super) counts: usize,
    /// After the counts, to be read with them: the number of kept rows and the kept rows, for each query.
    pub(super) kept: usize,
    pub(super) rows: usize,
    pub(super) results: usize,
    /// `key · 2³² + row`, `capacity` for each query.
    pub(super) found: usize,
    pub(super) capacity: usize,
    /// Keys of a sample.
    pub(super) keys: usize,
    pub(super) bytes: usize,
}

impl Places {
    /// Returns the places for `queries` queries, `padded` including padding.
    pub(super) fn new(
        (bars, counts): (usize, usize),
        (queries, padded): (usize, usize),
        results: usize,
        capacity: usize,
        sample: usize,
    ) -> Self {
        let kept = counts + 4 * padded;
        let rows = kept + 4 * queries;
        let found = (rows + 4 * queries * results).next_multiple_of(ALIGNMENT);
        let keys = (found + 8 * padded * capacity).next_multiple_of(ALIGNMENT);
        Self {
            bars,
            counts,
            kept,
            rows,
            results,
            found,
            capacity,
            keys,
            bytes: keys + 4 * padded * sample,
        }
    }
}
