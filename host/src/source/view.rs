//! Values where they lie, and what brings them into memory.

use std::ops::Range;

use tercet_core::number::Element;

use super::{CHUNK, Kind, Source, TILE};
use crate::Error;
use crate::dtype::DType;
use crate::parallel::each::numbers;

/// Bytes that stay mapped behind a pass: a tensor of no more is at hand for the next one.
const BEHIND: usize = 16 << 20;

impl Source<'_> {
    /// The `len` values from `start` on: where they lie, if as aligned `f32` of this machine, else read into `buffer`.
    pub(crate) fn view<'b>(
        &'b self,
        start: usize,
        len: usize,
        buffer: &'b mut Vec<f32>,
    ) -> Result<&'b [f32], Error> {
        if let Some(values) = self.lying(start, len) {
            return Ok(values);
        }
        buffer.resize(len, 0.0);
        self.read(start, buffer)?;
        Ok(buffer)
    }

    /// The `len` values from `start` on where they lie, if as aligned `f32` of this machine; brought into memory.
    pub(crate) fn lying(&self, start: usize, len: usize) -> Option<&[f32]> {
        self.lying_as(DType::F32, start, len)
    }

    /// As [`Source::lying`], as other elements; `dtype` is what files call `T`.
    pub(crate) fn lying_as<T: Element>(
        &self,
        dtype: DType,
        start: usize,
        len: usize,
    ) -> Option<&[T]> {
        let values = self.mapped_as(dtype, start, len)?;
        self.page_in(start, len);
        Some(values)
    }

    /// As [`Source::lying`], in memory or not.
    pub(super) fn mapped(&self, start: usize, len: usize) -> Option<&[f32]> {
        self.mapped_as(DType::F32, start, len)
    }

    fn mapped_as<T: Element>(&self, dtype: DType, start: usize, len: usize) -> Option<&[T]> {
        let plain = matches!(self.kind, Kind::Plain) && self.tensor.dtype == dtype;
        // Rows that are read in another order do not lie so.
        if !plain || self.head.is_some() || cfg!(target_endian = "big") {
            return None;
        }
        let bytes = &self.tensor.bytes[start * T::BYTES..][..len * T::BYTES];
        // SAFETY: elements are floats, and every pattern of their bytes is one.
        let (before, values, after) = unsafe { bytes.align_to() };
        (before.is_empty() && after.is_empty()).then_some(values)
    }

    /// Where the `len` values from `start` on enter a chunk, reads all of its bytes in: whoever comes first to a chunk, so that
    /// the others compute meanwhile.
    pub(super) fn page_in(&self, start: usize, len: usize) {
        // Of these the bytes come in the values' order.
        let ordered = matches!(
            self.kind,
            Kind::Plain | Kind::Blocks(_) | Kind::Codes { .. }
        );
        let (first, all) = (start.next_multiple_of(CHUNK), self.values());
        if ordered && first < start + len && all >= CHUNK {
            let end = all.min(first + CHUNK);
            self.page_in_bytes(self.bytes_of(first) as usize..self.bytes_of(end) as usize);
        }
    }

    /// Reads bytes of the tensor in, and lets go of what lies far behind, as a pass in order has it. The system, which is asked for
    /// bytes in order, reads ahead by itself.
    ///
    /// To ask it for more with `MADV_WILLNEED` halved the rate from a disk to a process that has less memory than the file: it
    /// then fills memory page by page, not in the large pieces of its own reading ahead (Linux 6.18).
    pub(crate) fn page_in_bytes(&self, part: Range<usize>) {
        let bytes = self.tensor.bytes;
        let behind = part.start.saturating_sub(BEHIND);
        self.model.page_in(&bytes[part.clone()]);
        self.model
            .release(&bytes[behind.saturating_sub(part.len())..behind]);
    }

    /// Lets go of the tensor's pages: the process holds them no longer, the system may.
    pub(crate) fn release(&self) {
        self.model.release(self.tensor.bytes);
    }
}

/// Values that all threads take together, so that a pass goes through memory and over the disk from front to end: 16 MiB as `f32`.
const WINDOW: usize = 4 * CHUNK;

/// The windows of a pass over `len` values from `first` on, in order.
pub(crate) fn windows(first: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    let end = first + len;
    (first..end)
        .step_by(WINDOW)
        .map(move |at| at..end.min(at + WINDOW))
}

/// Runs `work` over tiles of the `len` values from `first` on, on all threads, and merges what it gives in order;
/// `None` without values.
pub(crate) fn tiles<T: Send + 'static>(
    source: &Source<'_>,
    first: usize,
    len: usize,
    work: impl Fn(&[f32]) -> T + Sync,
    merge: impl Fn(T, T) -> T + Sync,
) -> Result<Option<T>, Error> {
    let mut all = None;
    for window in windows(first, len) {
        let found = numbers(0..window.len().div_ceil(TILE))
            .reduce_with(
                Vec::new,
                |values, _, tile| {
                    let from = window.start + tile * TILE;
                    let len = TILE.min(window.end - from);
                    Ok::<_, Error>(work(source.view(from, len, values)?))
                },
                // In order and to the end, so that the lowest place is the one reported.
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
